package networks_test

import (
	"context"
	"flag"
	"os"

	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks"
	"github.com/nnopt/nnopt/tool/standard"
)

// A verb of one's own scores as run does.
func ExampleDeclareScoring() {
	score := tool.Verb{
		Name:     "score",
		Synopsis: "say how utterances would be scored",
		Setup: func(_ *tool.Config, fs *flag.FlagSet) tool.Action {
			scoring := networks.DeclareScoring(fs)
			return func(_ context.Context, c *tool.Console, _ []string) error {
				s, err := scoring()
				if err != nil {
					return err
				}
				c.Print("chunks of %d frames, looped: %v\n", s.Options.FramesPerChunk, s.Looped)
				return nil
			}
		},
	}
	cfg := standard.Program{Name: "other", Verbs: []tool.Verb{score}}.Config()
	cfg.Run(context.Background(), []string{"score"}, nil, os.Stdout, os.Stderr)
	cfg.Run(context.Background(), []string{"score", "--looped"}, nil, os.Stdout, os.Stderr)
	// Output:
	// chunks of 50 frames, looped: false
	// chunks of 24 frames, looped: true
}
