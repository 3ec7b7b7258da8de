package rewrite

import (
	"context"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// WhyNot explains why a rule does not fire at an apply: it does not track the op, it gives a
// reason itself, its proposal is invalid, or a feature of the graph objects. If the rule fires,
// WhyNot shows the rewrite. Either way the graph is left unchanged. Options in ctx are ignored.
func WhyNot(ctx context.Context, r NodeRewriter, g *fgraph.FunctionGraph, n *fgraph.Apply) string {
	if !g.Contains(n) {
		return fmt.Sprintf("%v is not in the graph", n)
	}
	if err := checkRules(r); err != nil {
		return err.Error()
	}
	if tracks := r.Tracks(); !matches(tracks, n.Op()) {
		return fmt.Sprintf("it does not track %v, but %s", n.Op(), trackList(tracks))
	}
	var said []string
	fires := ""
	ctx = WithOptions(ctx, Options{
		WhyNot: func(m Miss) { said = append(said, m.Text) },
		Trace: func(e Event) {
			if e.Err != nil {
				said = append(said, fmt.Sprintf("refused: %s -> %s: %v", e.Before, e.After, e.Err))
				return
			}
			fires = fmt.Sprintf("it fires: %s -> %s", e.Before, e.After)
		},
	})
	e, err := newEngine(ctx, "why not", nil, []NodeRewriter{r}, g, nil)
	if err != nil {
		return err.Error()
	}
	defer e.close()
	h, attached := fgraph.FeatureOf[*fgraph.History](g)
	if !attached {
		h = fgraph.NewHistory()
		if err := g.Attach(h); err != nil {
			return err.Error()
		}
		defer g.Detach(h)
	}
	// The rule is really tried, objections of features included, and then everything is taken back.
	before := h.Checkpoint()
	_, fired, err := e.fire([]int{0}, n)
	if revert := h.Revert(before); revert != nil {
		return revert.Error()
	}
	switch {
	case err != nil:
		return fmt.Sprintf("it fails: %v", err)
	case fired:
		return fires
	case len(said) > 0:
		return strings.Join(said, "; ")
	case len(e.pairs) == 0 && e.proposed:
		return "its proposal changes nothing"
	}
	return "it proposes nothing, and does not say why"
}

// trackList prints the first few tracks.
func trackList(tracks []Track) string {
	const most = 8
	var names []string
	for i, t := range tracks {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}
