package engine

import (
	"slices"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// TestUnwatchCostsWhatWatchCosts lets a key go whose rows could be derived, under
// other keys, from each of many packages that need the same one.
func TestUnwatchCostsWhatWatchCosts(t *testing.T) {
	const packages = 2000
	b := (&builder{}).base("depends", "package", "name").base("offers", "name", "package")
	b.derived("needs", "package", "other").derived("installs", "package", "other")
	b.rule(a("needs", "P", "O"), a("depends", "P", "N"), a("offers", "N", "O"))
	b.rule(a("installs", "P", "O"), a("needs", "P", "O"))
	b.rule(a("installs", "P", "O"), a("installs", "P", "V"), a("needs", "V", "O"))
	b.view("deps", []string{"P"}, []string{"O"}, a("needs", "P", "O"))
	b.view("everything", []string{"P"}, []string{"O"}, a("installs", "P", "O"))
	e := deployed(t, b)
	var ops []analysis.Op
	for p := range packages {
		ops = append(ops, ins("offers", p, p), ins("depends", p, 0), ins("depends", p, (p+1)%packages))
	}
	apply(t, e, 1, ops...)
	for _, view := range []string{"deps", "everything"} {
		for _, others := range []int{0, 50} {
			var kept []*Key
			for i := range others {
				kept = append(kept, watch(t, e, view, 10*i+1))
			}
			before := e.network.Steps()
			k := watch(t, e, view, 7)
			watched := e.network.Steps()
			e.Unwatch(k)
			watching, unwatching := watched-before, e.network.Steps()-watched
			if unwatching > 2*watching+100 {
				t.Errorf("%s beside %d: %d steps to watch and %d to unwatch", view, others,
					watching, unwatching)
			}
			for _, k := range kept {
				e.Unwatch(k)
			}
		}
	}
	if n := e.Stats().DerivedRows; n != 0 {
		t.Errorf("%d derived rows are left", n)
	}
}

// TestDebianUnwatch checks on real data that what keys leave behind is nothing, and
// what they leave to others is right.
func TestDebianUnwatch(t *testing.T) {
	if testing.Short() {
		t.Skip("loads 283,196 rows")
	}
	e, packages := debianEngine(t)
	var keys []*Key
	var rows [][]value.Value
	for i, view := range []string{"deps", "everything", "clashes", "users"} {
		for j := range 10 {
			keys = append(keys, watch(t, e, view, packages[(7*i+j)*97]))
			rows = append(rows, e.Rows(keys[len(keys)-1], 0, nil))
		}
	}
	for len(keys) > 0 {
		for i, k := range keys {
			if !slices.Equal(e.Rows(k, 0, nil), rows[i]) {
				t.Fatalf("the rows of %s%v changed as other keys went", k.View(), k.Values())
			}
		}
		at := len(keys) * 5 / 7
		e.Unwatch(keys[at])
		keys, rows = slices.Delete(keys, at, at+1), slices.Delete(rows, at, at+1)
	}
	if n := e.Stats().DerivedRows; n != 0 {
		t.Errorf("%d derived rows are left", n)
	}
}

// TestUnwatchOfTouched lets keys go that Changes has still to tell of.
func TestUnwatchOfTouched(t *testing.T) {
	b := (&builder{}).base("edge", "src", "dst")
	b.view("out", []string{"S"}, []string{"D"}, a("edge", "S", "D"))
	e := deployed(t, b)
	var keys []*Key
	var ops []analysis.Op
	for i := range 5 {
		keys = append(keys, watch(t, e, "out", i))
		ops = append(ops, ins("edge", i, 10))
	}
	apply(t, e, 1, ops...)
	for _, i := range []int{0, 3} {
		e.Unwatch(keys[i])
	}
	var told []*Key
	tell := func(k *Key, _ uint64, _ []Change) { told = append(told, k) }
	e.Changes(tell)
	if !slices.Equal(told, []*Key{keys[1], keys[2], keys[4]}) {
		t.Errorf("%d keys are told, or not in order", len(told))
	}
	apply(t, e, 2, ins("edge", 1, 11), ins("edge", 2, 11))
	for _, i := range []int{2, 1} {
		e.Unwatch(keys[i])
	}
	if e.Unreported() {
		t.Error("something is unreported after the keys have gone that it was of")
	}
	told = nil
	apply(t, e, 3, ins("edge", 4, 11))
	if e.Changes(tell); !slices.Equal(told, keys[4:]) {
		t.Error("the key that is left is not told")
	}
}
