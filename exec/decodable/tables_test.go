package decodable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// file writes a file and returns its name.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const threeFeatures = "a [\n 1 2\n 3 4 ]\nb [\n 5 6 ]\nc [\n 7 8 ]\n"

// TestTables writes an utterance as key, or as key! if it has an error.
func TestTables(t *testing.T) {
	features := "ark:" + file(t, "feats", threeFeatures)
	path := strings.TrimPrefix(features, "ark:")
	for _, c := range []struct {
		name  string
		names decodable.TableNames
		want  string
		err   error // of the last utterance that has one
	}{
		{"features", decodable.TableNames{Features: features}, "a b c", nil},
		{"none", decodable.TableNames{Features: "ark:" + file(t, "f", "")}, "", nil},
		{"archive that is cut", decodable.TableNames{Features: "ark:" + file(t, "f", threeFeatures[:30])}, "a b !", kaldiio.ErrTruncated},
		{"archive that is broken", decodable.TableNames{Features: "ark:" + file(t, "f", strings.Replace(threeFeatures, "5 6", "5 ?", 1))}, "a ! c", kaldiio.ErrCorrupt},
		{"i-vectors that are broken", decodable.TableNames{Features: features, Ivectors: "ark:" + file(t, "i", "a [ 1 ]\nb [ ? ]\nc [ 1 ]\n")}, "a b! c", kaldiio.ErrCorrupt},
		{"script with a hole", decodable.TableNames{Features: "scp:" + file(t, "s", "a "+path+":2\nx "+path+"x\nb "+path+":18\n")}, "a ! b", os.ErrNotExist},
		{"broken script", decodable.TableNames{Features: "scp:" + file(t, "s", "a "+path+":2\nx\nb "+path+":18\n")}, "a !", kaldiio.ErrCorrupt},
		{"script with a command", decodable.TableNames{Features: "scp:" + file(t, "s", "a cat "+path+" |\n")}, "!", kaldiio.ErrCommand},
		{"i-vectors", decodable.TableNames{Features: features, Ivectors: "ark:" + file(t, "i", "a [ 1 ]\nb [ 1 ]\nc [ 1 ]\n")}, "a b c", nil},
		{"missing i-vector", decodable.TableNames{Features: features, Ivectors: "ark:" + file(t, "i", "a [ 1 ]\nc [ 1 ]\n")}, "a b! c", decodable.ErrIvector},
		{"empty i-vector", decodable.TableNames{Features: features, Ivectors: "ark:" + file(t, "i", "a [ 1 ]\nb [ ]\nc [ 1 ]\n")}, "a b! c", decodable.ErrIvector},
		{"i-vectors that are cut", decodable.TableNames{Features: features, Ivectors: "ark:" + file(t, "i", "a [ 1 ]\nb [ 1")}, "a b! c!", kaldiio.ErrTruncated},
		{"i-vectors by speaker", decodable.TableNames{Features: features, Ivectors: "ark:" + file(t, "i", "s [ 1 ]\n"), Speakers: "ark:" + file(t, "u", "a s\nb s\nc s\n")}, "a b c", nil},
		{"missing speaker", decodable.TableNames{Features: features, Ivectors: "ark:" + file(t, "i", "s [ 1 ]\n"), Speakers: "ark:" + file(t, "u", "a s\nc s\n")}, "a b! c", decodable.ErrIvector},
		{"speaker without an i-vector", decodable.TableNames{Features: features, Ivectors: "ark:" + file(t, "i", "s [ 1 ]\n"), Speakers: "ark:" + file(t, "u", "a s\nb r\nc s\n")}, "a b! c", decodable.ErrIvector},
		{"online i-vectors", decodable.TableNames{Features: features, OnlineIvectors: "ark:" + file(t, "i", "a [\n 1 ]\nc [\n 1 ]\n")}, "a b! c", decodable.ErrIvector},
	} {
		t.Run(c.name, func(t *testing.T) {
			tables, err := decodable.OpenTables(new(kaldiio.Opener), c.names)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var last error
			for u, err := range tables.Utterances() {
				key := u.Key
				if err != nil {
					key += "!"
					last = err
				} else if c.names.Ivectors != "" && len(u.Ivector) != 1 || c.names.OnlineIvectors != "" && u.OnlineIvectors.Rows != 1 {
					t.Errorf("%s has no i-vector", key)
				}
				got = append(got, key)
			}
			if got := strings.Join(got, " "); got != c.want || !errors.Is(last, c.err) {
				t.Errorf("%q, %v; want %q, %v", got, last, c.want, c.err)
			}
			if err := tables.Close(); err != nil && !strings.Contains(c.name, "i-vectors that are cut") {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

func TestOpenTables(t *testing.T) {
	features := "ark:" + file(t, "feats", threeFeatures)
	for _, c := range []struct {
		name  string
		names decodable.TableNames
		want  error
	}{
		{"no rspecifier", decodable.TableNames{Features: "feats.ark"}, kaldiio.ErrSpecifier},
		{"no features", decodable.TableNames{Features: "ark:none"}, os.ErrNotExist},
		{"no i-vectors", decodable.TableNames{Features: features, Ivectors: "ark:none"}, os.ErrNotExist},
		{"no speakers", decodable.TableNames{Features: features, Ivectors: features, Speakers: "ark:none"}, os.ErrNotExist},
		{"no online i-vectors", decodable.TableNames{Features: features, OnlineIvectors: "scp:none"}, os.ErrNotExist},
		{"a command", decodable.TableNames{Features: "ark:cat feats |"}, kaldiio.ErrCommand},
		{"two kinds of i-vectors", decodable.TableNames{Features: features, Ivectors: features, OnlineIvectors: features}, decodable.ErrOptions},
		{"speakers of nothing", decodable.TableNames{Features: features, Speakers: features}, decodable.ErrOptions},
	} {
		if _, err := decodable.OpenTables(new(kaldiio.Opener), c.names); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestPosition: the position goes from zero to the size.
func TestPosition(t *testing.T) {
	tables, err := decodable.OpenTables(new(kaldiio.Opener), decodable.TableNames{Features: "ark:" + file(t, "feats", threeFeatures)})
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	before := int64(0)
	for range tables.Utterances() {
		read, size := tables.Position()
		if size != int64(len(threeFeatures)) || read <= before || read > size {
			t.Errorf("%d of %d bytes, %d before", read, size, before)
		}
		before = read
	}
	tables, err = decodable.OpenTables(&kaldiio.Opener{Stdin: strings.NewReader(threeFeatures)}, decodable.TableNames{Features: "ark:-"})
	if err != nil {
		t.Fatal(err)
	}
	if read, size := tables.Position(); read != 0 || size != -1 {
		t.Errorf("before the start: %d of %d bytes", read, size)
	}
}

// TestUnread: Unread counts lines of a script, or bytes of an archive.
func TestUnread(t *testing.T) {
	archive := file(t, "feats", threeFeatures)
	script := "a " + archive + ":2\nb " + archive + ":18\nc " + archive + ":29"
	for _, c := range []struct {
		features string
		lines    int
		bytes    int64
	}{
		{"ark:" + archive, -1, int64(len(threeFeatures) - strings.Index(threeFeatures, "b"))},
		{"scp:" + file(t, "s", script), 2, int64(len(script) - strings.Index(script, "b "))},
		{"scp:" + file(t, "s", script+"\n"), 2, int64(len(script) + 1 - strings.Index(script, "b "))},
		{"ark:-", -1, -1},
	} {
		tables, err := decodable.OpenTables(&kaldiio.Opener{Stdin: strings.NewReader(threeFeatures)}, decodable.TableNames{Features: c.features})
		if err != nil {
			t.Fatal(err)
		}
		for range tables.Utterances() {
			break
		}
		if lines, bytes := tables.Unread(); lines != c.lines || bytes != c.bytes {
			t.Errorf("%s: %d lines, %d bytes; want %d, %d", c.features, lines, bytes, c.lines, c.bytes)
		}
		tables.Close()
	}
}
