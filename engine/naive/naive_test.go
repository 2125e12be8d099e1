package naive

import (
	"fmt"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// TestAnswer checks the twin itself on what can be seen by eye.
func TestAnswer(t *testing.T) {
	const source = `+edge(src: int, dst: int)
+name(node: int, text: string)
reach(X, Y) <- edge(X, Y)
reach(X, Z) <- reach(X, Y), edge(Y, Z)
view named($x: int, $not: string) := ?reach($x, Y), name(Y, T), T != $not
view loops($min: int) := ?reach(X, X), X >= $min
view third($min: int) := ?edge(3, _), edge(X, 3), X > $min
`
	file, err := parse.Program(source)
	if err != nil {
		t.Fatal(err)
	}
	p, err := analysis.Analyse(file, source)
	if err != nil {
		t.Fatal(err)
	}
	facts := Facts{"edge": Set{}, "name": Set{}}
	for _, e := range [][2]int64{{1, 2}, {2, 3}, {3, 2}, {3, 4}} {
		facts["edge"].Add([]value.Value{value.OfInt(e[0]), value.OfInt(e[1])})
	}
	for i, text := range []string{"a", "b", "c", "d"} {
		facts["name"].Add([]value.Value{value.OfInt(int64(i + 1)), value.OfString(text)})
	}
	if facts["name"].Add([]value.Value{value.OfInt(1), value.OfString("a")}) {
		t.Error("a present row is added")
	}
	db := Derive(p, facts)
	tests := []struct {
		view string
		key  []value.Value
		want string
	}{
		{"named", []value.Value{value.OfInt(1), value.OfString("c")}, `[[1 2 "b"] [1 4 "d"]]`},
		{"named", []value.Value{value.OfInt(4), value.OfString("")}, `[]`},
		{"loops", []value.Value{value.OfInt(0)}, `[[2 2] [3 3]]`},
		{"loops", []value.Value{value.OfInt(3)}, `[[3 3]]`},
		{"third", []value.Value{value.OfInt(0)}, `[[3 2]]`},
	}
	for _, test := range tests {
		got := fmt.Sprint(Answer(db, p.ViewNamed(test.view).Query(), test.key))
		if got != test.want {
			t.Errorf("%s%v: %s, want %s", test.view, test.key, got, test.want)
		}
	}
	facts["edge"].Remove([]value.Value{value.OfInt(3), value.OfInt(2)})
	loops := p.ViewNamed("loops").Query()
	if rows := Answer(Derive(p, facts), loops, tests[2].key); len(rows) > 0 {
		t.Errorf("loops without a cycle: %v", rows)
	}
}
