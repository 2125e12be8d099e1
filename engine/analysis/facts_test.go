package analysis

import (
	"errors"
	"testing"

	"github.com/heddle-live/heddle/engine/value"
)

func TestCheckTransaction(t *testing.T) {
	p := mustAnalyse(t, base)
	statements, err := checkTransaction(p,
		"+edge[(1, 2), (2, 3)]\n-label(1, \"hot\")\n+price(\"a\", 1.5)")
	if err != nil {
		t.Fatal(err)
	}
	if len(statements) != 1 {
		t.Fatalf("%d statements, want one of plain facts", len(statements))
	}
	ops := statements[0].Ops
	one, two, three := value.OfInt(1), value.OfInt(2), value.OfInt(3)
	amount, _ := value.OfFloat(1.5)
	want := []Op{
		{Relation: "edge", Row: []value.Value{one, two}},
		{Relation: "edge", Row: []value.Value{two, three}},
		{Relation: "label", Delete: true, Row: []value.Value{one, value.OfString("hot")}},
		{Relation: "price", Row: []value.Value{value.OfString("a"), amount}},
	}
	if len(ops) != len(want) {
		t.Fatalf("%d operations, want %d", len(ops), len(want))
	}
	for i, op := range ops {
		if op.Relation != want[i].Relation || op.Delete != want[i].Delete ||
			len(op.Row) != 2 || op.Row[0] != want[i].Row[0] || op.Row[1] != want[i].Row[1] {
			t.Errorf("operation %d is %v, want %v", i, op, want[i])
		}
		if cap(op.Row) != len(op.Row) {
			t.Errorf("appending to row %d would overwrite the next", i)
		}
	}
}

func TestCheckRow(t *testing.T) {
	p := mustAnalyse(t, base)
	text := value.OfString("x")
	for _, c := range []struct {
		name, relation string
		row            []value.Value
		column, want   string
	}{
		{"fits", "edge", []value.Value{value.OfInt(1), value.OfInt(2)}, "", ""},
		{
			"misspelt relation", "egde",
			[]value.Value{text},
			"",
			"there is no relation egde; did you mean edge?",
		},
		{"view", "hot", []value.Value{text}, "", "hot is a view, not a relation"},
		{
			"derived", "r1", []value.Value{text}, "", "relation r1 is derived by rules and holds no " +
				"facts of its own; write the facts that its rules read: edge, label",
		},
		{
			"width", "edge",
			[]value.Value{text},
			"",
			"relation edge: expected 2 values, as in edge(src: int, dst: int), got 1 value",
		},
		{
			"type", "edge",
			[]value.Value{value.OfInt(1), text},
			"dst",
			`relation edge, column dst: expected an int, got "x", which is a string`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckRow(p, c.relation, c.row)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			row, ok := errors.AsType[*RowError](err)
			if !ok || row.Relation != c.relation || row.Column != c.column || row.Message != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
	row := []value.Value{value.OfInt(1), text}
	allocs := testing.AllocsPerRun(100, func() {
		if CheckRow(p, "label", row) != nil {
			panic("the row does not fit")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a row that fits, want 0", allocs)
	}
}

// TestProgramByHand checks that programs made without Analyse serve as well,
// and stay as they are.
func TestProgramByHand(t *testing.T) {
	analysed := mustAnalyse(t, base)
	p := &Program{Relations: analysed.Relations, Rules: analysed.Rules, Views: analysed.Views}
	if _, err := analyseQuery(p, "?r1($k, Y)"); err != nil {
		t.Error(err)
	}
	if _, err := checkTransaction(p, "+edge(1, 2)"); err != nil {
		t.Error(err)
	}
	if err := CheckRow(p, "edge", []value.Value{value.OfInt(1), value.OfInt(2)}); err != nil {
		t.Error(err)
	}
	if p.names != nil {
		t.Error("the program was changed")
	}
	if id, ok := p.RelationNamed("label"); !ok || p.Relations[id].Name != "label" {
		t.Errorf("RelationNamed finds %v, %v", id, ok)
	}
	if p.ViewNamed("hot") == nil || p.ViewNamed("edge") != nil {
		t.Error("ViewNamed finds the wrong views")
	}
}

func TestNearest(t *testing.T) {
	for _, c := range []struct{ name, candidates, want string }{
		{"egde", "label edge", "edge"},
		{"Edge", "label edge", "edge"},
		{"edges", "label edge", "edge"},
		{"lable", "edge label", "label"},
		{"shpment", "ship shipment", "shipment"},
		{"e", "f g", ""},
		{"X", "Y x", "x"},
		{"customer", "edge label", ""},
		{"ab", "ac", "ac"},
		{"", "a", ""},
	} {
		if got := nearest(c.name, splitWords(c.candidates)); got != c.want {
			t.Errorf("nearest to %q of %q is %q, want %q", c.name, c.candidates, got, c.want)
		}
	}
}
