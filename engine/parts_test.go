package engine

import (
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
)

// pageProgram has a view of two parts: the edges of a node, and its labels.
func pageProgram() *builder {
	b := (&builder{}).base("edge", "src", "dst").base("label", "node", "text:string")
	edges := b.query([]string{"H"}, []string{"Y"}, a("edge", "H", "Y"))
	labels := b.query([]string{"H"}, []string{"H", "L"}, a("label", "H", "L"))
	b.Views = append(b.Views, analysis.View{
		Name: "page", Parameters: edges.Parameters,
		Parts: []analysis.Part{{Name: "edges", Query: *edges}, {Name: "labels", Query: *labels}},
	})
	return b.view("out", []string{"H"}, []string{"Y"}, a("edge", "H", "Y"))
}

func wantPart(t *testing.T, e *Engine, k *Key, part int, want string) {
	t.Helper()
	if got := showPart(k, part, e.Rows(k, part, nil)); got != want {
		t.Errorf("part %d of %s%v: %s, want %s", part, k.View(), k.Values(), got, want)
	}
}

func TestPartsOfOneKeyChangeTogether(t *testing.T) {
	e := deployed(t, pageProgram())
	apply(t, e, 1, ins("edge", 1, 2), ins("label", 1, "a"), ins("edge", 2, 3))
	k, out := watch(t, e, "page", 1), watch(t, e, "out", 1)
	if again := watch(t, e, "page", 1); again != k {
		t.Error("one key of a view with parts is watched as two")
	}
	e.Unwatch(k)
	wantPart(t, e, k, 0, "(2)")
	wantPart(t, e, k, 1, "(1 \"a\")")
	apply(t, e, 2, ins("edge", 1, 4), del("label", 1, "a"))
	wantChanges(t, e, "page[1]@2 +(4) -() +() -(1 \"a\")", "out[1]@2 +(4) -()")
	apply(t, e, 3, ins("label", 1, "b"))
	wantPart(t, e, k, 1, "(1 \"b\")")
	wantChanges(t, e, "page[1]@3 +() -() +(1 \"b\") -()")
	e.Unwatch(out)

	apply(t, e, 4, ins("edge", 1, 5), del("label", 1, "b"))
	apply(t, e, 5, del("edge", 1, 5), ins("label", 1, "b"))
	wantChanges(t, e) // both parts are as before

	e.Unwatch(k)
	if s := e.Stats(); s.DerivedRows != 0 || s.WatchedKeys != 0 {
		t.Errorf("%d derived rows, %d keys after the last Unwatch", s.DerivedRows, s.WatchedKeys)
	}
}

func TestDeployKeepsPartsOfTheSameShape(t *testing.T) {
	e := deployed(t, pageProgram())
	apply(t, e, 1, ins("edge", 1, 2), ins("label", 1, "a"))
	k := watch(t, e, "page", 1)
	apply(t, e, 2, ins("label", 1, "b"))

	next := pageProgram()
	*next.Views[0].Query() = *next.query([]string{"H"}, []string{"Y"}, a("edge", "Y", "H"))
	d, err := e.Deploy(next.program(), false)
	if err != nil || len(d.ChangedViews) != 1 || len(d.LostKeys) != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	wantChanges(t, e, "page[1]@3 +() -(2) +(1 \"b\") -()")

	renamed := pageProgram()
	renamed.Views[0].Parts[1].Name = "names"
	d, err = e.Deploy(renamed.program(), false)
	if err != nil || len(d.LostKeys) != 1 || d.LostKeys[0] != k {
		t.Fatalf("%+v, %v", d, err)
	}
}
