package engine

import (
	"slices"
	"strings"
	"testing"
)

func TestTouchedViews(t *testing.T) {
	const before = `+edge(src: int, dst: int)
+off(node: int)
path(X, Y) <- edge(X, Y)
path(X, Z) <- path(X, Y), edge(Y, Z)
live(X, Y) <- path(X, Y), !off(Y)
view edges($x: int) := ?edge($x, Y)
view paths($x: int) := ?path($x, Y)
view lives($x: int) := ?live($x, Y)
view both($x: int) := edges: ?edge($x, Y), lives: ?live($x, Y)
`
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"nothing", "path(X, Y) <- edge(X, Y)", "path(X, Y)  <-  edge(X, Y)", nil},
		{
			"a clause", "path(X, Y) <- edge(X, Y)", "path(X, Y) <- edge(Y, X)",
			[]string{"paths", "lives", "both"},
		},
		{"behind a negation", "+off(node: int)", "+off(place: int)", []string{"lives", "both"}},
		{
			"a relation", "+edge(src: int, dst: int)", "+edge(src: int, to: int)",
			[]string{"edges", "paths", "lives", "both"},
		},
		{"the view itself", "?path($x, Y)", "?path(Y, $x)", nil},
		{"what nobody reads", "+off", "+more(x: int)\n+off", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(before, c.old) == 0 {
				t.Fatalf("%s is not there", c.old)
			}
			next := strings.Replace(before, c.old, c.new, 1)
			got := touchedViews(analysed(t, before), analysed(t, next))
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
