package view

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/internal/fileio"
)

// pageFiles are the parts of the page: a template, style sheets and scripts, and the libraries
// that the scripts use.
//
//go:embed page
var pageFiles embed.FS

// The marks in page/index.html that parts of the page take the place of.
const (
	markPolicy = "<!--POLICY-->"
	markTitle  = "{{TITLE}}"
	markStyle  = "/*STYLE*/"
	markScript = "/*SCRIPT*/"
	markData   = "<!--DATA-->"
)

// smallData is the number of bytes up to which the data of a page stay as they are.
const smallData = 4 << 10

// A shell is the page without its data.
type shell struct {
	before, title, middle, after string // around policy, title and data
	policy                       string // for files
	served                       string // for a server
}

// loadShell puts the parts of the page together, once.
var loadShell = sync.OnceValues(func() (*shell, error) { return newShell(pageFiles, nil, false) })

// newShell puts the parts of a page together. more has further ones, unless it is nil.
func newShell(files, more fs.FS, wasm bool) (*shell, error) {
	text, err := fs.ReadFile(files, "page/index.html")
	if err != nil {
		return nil, err
	}
	style, err := joined(".css", files, more)
	if err != nil {
		return nil, err
	}
	script, err := joined(".js", files, more)
	if err != nil {
		return nil, err
	}
	if strings.Contains(strings.ToLower(style), "</style") || strings.Contains(strings.ToLower(script), "</script") {
		return nil, fmt.Errorf("view: a part of the page has the end of its element in it")
	}
	s := new(shell)
	rest := string(text)
	for _, cut := range []struct {
		mark string
		into *string
	}{{markPolicy, &s.before}, {markTitle, &s.title}, {markData, &s.middle}} {
		before, after, ok := strings.Cut(rest, cut.mark)
		if !ok {
			return nil, fmt.Errorf("view: page/index.html has no %s", cut.mark)
		}
		*cut.into, rest = before, after
	}
	s.after = rest
	fill := strings.NewReplacer(markStyle, style, markScript, script)
	for _, part := range []*string{&s.before, &s.title, &s.middle, &s.after} {
		*part = fill.Replace(*part)
	}
	whole := s.before + s.title + s.middle + s.after
	scripts := hashes(whole, scriptElement)
	if wasm {
		scripts += " 'wasm-unsafe-eval'"
	}
	s.policy = "default-src 'none'; script-src" + scripts + "; style-src" + hashes(whole, styleElement) +
		"; img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'"
	s.served = s.policy + "; connect-src 'self'; frame-ancestors 'none'"
	return s, nil
}

// The elements whose contents a policy must allow.
var (
	scriptElement = regexp.MustCompile(`(?is)<script>(.*?)</script>`)
	styleElement  = regexp.MustCompile(`(?is)<style>(.*?)</style>`)
)

// hashes returns the hashes by which a policy allows the elements of a page.
func hashes(page string, element *regexp.Regexp) string {
	var b strings.Builder
	for _, m := range element.FindAllStringSubmatch(page, -1) {
		sum := sha256.Sum256([]byte(m[1]))
		b.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
	}
	return b.String()
}

// joined returns the files with an extension, libraries first, in the order of their names.
func joined(ext string, all ...fs.FS) (string, error) {
	var b strings.Builder
	for _, files := range all {
		if files == nil {
			continue
		}
		for _, dir := range []string{"page/lib", "page"} {
			names, err := fs.Glob(files, path.Join(dir, "*"+ext))
			if err != nil {
				return "", err
			}
			slices.Sort(names)
			for _, name := range names {
				text, err := fs.ReadFile(files, name)
				if err != nil {
					return "", err
				}
				b.Write(text)
				b.WriteByte('\n')
			}
		}
	}
	return b.String(), nil
}

// A Page is a page that has more in it than a recording, such as an engine of its own.
type Page struct {
	Recording *Recording
	// Files are scripts and style sheets that follow those of the page, in a folder page.
	Files fs.FS
	// Data are texts that scripts find by the ids of their elements: pairs of id and text.
	Data        [][2]string
	WebAssembly bool // scripts may run it
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	s, err := newShell(pageFiles, p.Files, p.WebAssembly)
	if err != nil {
		return err
	}
	var data strings.Builder
	for _, d := range p.Data {
		if strings.Contains(strings.ToLower(d[1]), "</script") || strings.Contains(d[1], "<!--") {
			return fmt.Errorf("view: the text of %s has the end of its element in it", d[0])
		}
		fmt.Fprintf(&data, "<script type=\"text/plain\" id=\"%s\">%s</script>\n", html.EscapeString(d[0]), d[1])
	}
	s.middle += data.String()
	return s.write(w, p.Recording, s.meta())
}

// WritePage writes a page that shows the recording. It is one file, which needs no network and no
// other file.
func WritePage(w io.Writer, r *Recording) error {
	s, err := loadShell()
	if err != nil {
		return err
	}
	return s.write(w, r, s.meta())
}

// WriteServed writes the page for a server, and returns the policy that the server is to send with it.
func WriteServed(w io.Writer, r *Recording) (policy string, err error) {
	s, err := loadShell()
	if err != nil {
		return "", err
	}
	return s.served, s.write(w, r, "")
}

// meta returns the element with the policy.
func (s *shell) meta() string {
	return `<meta http-equiv="Content-Security-Policy" content="` + html.EscapeString(s.policy) + `">`
}

// write writes the page with the policy meta.
func (s *shell) write(w io.Writer, r *Recording, meta string) error {
	data, err := dataElement(r)
	if err != nil {
		return err
	}
	for _, part := range []string{s.before, meta, s.title, html.EscapeString(r.Title), s.middle, data, s.after} {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// dataElement returns the recording as an element of the page, compressed unless it is small.
func dataElement(r *Recording) (string, error) {
	text, err := json.Marshal(r) // with < as an escape, so that no element ends in it
	if err != nil {
		return "", fmt.Errorf("view: %w", err)
	}
	if len(text) <= smallData {
		return `<script type="application/json" id="recording">` + string(text) + "</script>", nil
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := z.Write(text); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return `<script type="application/octet-stream;base64" id="recording-gz">` + base64.StdEncoding.EncodeToString(packed.Bytes()) + "</script>", nil
}

// The elements that dataElement writes.
var dataElements = regexp.MustCompile(`(?s)<script type="[^"]*" id="recording(-gz)?">(.*?)</script>`)

// ReadPage returns the recording in a page that [WritePage] wrote.
func ReadPage(page io.Reader) (*Recording, error) {
	text, err := io.ReadAll(page)
	if err != nil {
		return nil, err
	}
	m := dataElements.FindSubmatch(text)
	if m == nil {
		return nil, errors.New("view: the page has no recording")
	}
	data := io.Reader(bytes.NewReader(m[2]))
	if len(m[1]) > 0 {
		if data, err = gzip.NewReader(base64.NewDecoder(base64.StdEncoding, data)); err != nil {
			return nil, fmt.Errorf("view: %w", err)
		}
	}
	r := new(Recording)
	if err := json.NewDecoder(fileio.Limit(data, "the recording", fileio.MaxText)).Decode(r); err != nil {
		return nil, fmt.Errorf("view: the recording: %w", err)
	}
	if r.Format != Format || r.Version != Version {
		return nil, fmt.Errorf("view: a recording of format %q, version %d, where %q, %d is known", r.Format, r.Version, Format, Version)
	}
	return r, nil
}
