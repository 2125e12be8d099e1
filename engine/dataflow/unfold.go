package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
)

// unfoldedAtomsMax bounds the atoms of a body after unfolding.
const unfoldedAtomsMax = 32

// unfolder replaces atoms of simple derived relations by their definition: those
// of a single clause whose head is distinct variables and names every variable of
// its body. Each of their rows has just one derivation, so keeping the rows would
// save no work and cost memory, a demand, and a step in each change. A clause that
// projects variables away is kept: unfolded, it would multiply derivations.
type unfolder struct {
	program *analysis.Program
	clauses map[analysis.RelationID][]*analysis.Rule
	known   map[analysis.RelationID]*analysis.Rule // the unfolded clause, or nil
}

// definition returns the one clause of a simple derived relation, itself unfolded,
// or nil.
func (u *unfolder) definition(id analysis.RelationID) *analysis.Rule {
	if r, ok := u.known[id]; ok {
		return r
	}
	u.known[id] = nil // a relation that is met again meanwhile is recursive
	if clauses := u.clauses[id]; len(clauses) == 1 && isSimple(clauses[0]) {
		r := *clauses[0]
		r.Body = u.body(&r.Body)
		if !slices.ContainsFunc(r.Body.Atoms, func(a analysis.Atom) bool { return a.Relation == id }) {
			u.known[id] = &r
		}
	}
	return u.known[id]
}

func isSimple(r *analysis.Rule) bool {
	inHead := make([]bool, len(r.Body.Variables))
	for _, t := range r.Head.Terms {
		if t.IsConst() || inHead[t.Var] {
			return false
		}
		inHead[t.Var] = true
	}
	for _, a := range r.Body.Atoms {
		for _, t := range a.Terms {
			if !t.IsConst() && !inHead[t.Var] {
				return false
			}
		}
	}
	return true
}

// body returns b with its simple atoms unfolded, or as it is where that would make
// it too long. The result shares the variables of b.
func (u *unfolder) body(b *analysis.Body) analysis.Body {
	out := analysis.Body{Variables: b.Variables}
	out.Comparisons = slices.Clone(b.Comparisons)
	for i, a := range b.Atoms {
		var d *analysis.Rule
		if u.program.Relations[a.Relation].Derived {
			d = u.definition(a.Relation)
		}
		rest := len(b.Atoms) - i - 1
		if d == nil || len(out.Atoms)+len(d.Body.Atoms)+rest > unfoldedAtomsMax {
			out.Atoms = append(out.Atoms, a)
			continue
		}
		terms := make([]analysis.Term, len(d.Body.Variables))
		for c, t := range d.Head.Terms {
			terms[t.Var] = a.Terms[c]
		}
		for _, inner := range d.Body.Atoms {
			unfolded := analysis.Atom{Relation: inner.Relation}
			for _, t := range inner.Terms {
				unfolded.Terms = append(unfolded.Terms, substitute(t, terms))
			}
			out.Atoms = append(out.Atoms, unfolded)
		}
		for _, c := range d.Body.Comparisons {
			out.Comparisons = append(out.Comparisons, analysis.Comparison{
				Op: c.Op, Left: substitute(c.Left, terms), Right: substitute(c.Right, terms),
			})
		}
	}
	return out
}

func substitute(t analysis.Term, terms []analysis.Term) analysis.Term {
	if t.IsConst() {
		return t
	}
	return terms[t.Var]
}
