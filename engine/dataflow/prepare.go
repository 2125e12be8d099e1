package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
)

// unfoldedAtomsMax bounds the atoms of a body after unfolding.
const unfoldedAtomsMax = 32

// Prepared is a program with what every network of it needs to know. It belongs to
// the goroutine that makes the networks.
type Prepared struct {
	program    *analysis.Program
	clauses    [][]*analysis.Rule // by relation
	components []int              // of the relations, by what their rules read
	// definitions holds what definition found out, by relation.
	definitions map[analysis.RelationID]*analysis.Rule
}

// Prepare looks at a program once, for the networks that will be made from it.
func Prepare(p *analysis.Program) *Prepared {
	u := &Prepared{
		program: p, clauses: make([][]*analysis.Rule, len(p.Relations)),
		definitions: make(map[analysis.RelationID]*analysis.Rule),
	}
	reads := make([][]int, len(p.Relations))
	for i := range p.Rules {
		r := &p.Rules[i]
		u.clauses[r.Head.Relation] = append(u.clauses[r.Head.Relation], r)
		for _, a := range r.Body.Atoms {
			reads[r.Head.Relation] = append(reads[r.Head.Relation], int(a.Relation))
		}
	}
	u.components, _ = stronglyConnected(reads)
	return u
}

// definition returns the one clause of a simple derived relation, itself unfolded,
// or nil. Simple are those of a single clause whose head is distinct variables and
// names every variable of its body. Each of their rows has just one derivation, so
// keeping the rows would save no work and cost memory, a demand, and a step in each
// change. A clause that projects variables away is no definition: unfolded, it
// would multiply derivations.
func (u *Prepared) definition(id analysis.RelationID) *analysis.Rule {
	if r, ok := u.definitions[id]; ok {
		return r
	}
	u.definitions[id] = nil // a relation that is met again meanwhile is recursive
	if clauses := u.clauses[id]; len(clauses) == 1 && isSimple(clauses[0]) {
		r := *clauses[0]
		r.Body = u.unfold(&r.Body)
		isSelf := func(a analysis.Atom) bool { return a.Relation == id }
		if !slices.ContainsFunc(r.Body.Atoms, isSelf) {
			u.definitions[id] = &r
		}
	}
	return u.definitions[id]
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

// unfold returns b with the atoms of simple relations replaced by their
// definitions, where that does not make it too long. The result shares the
// variables of b.
func (u *Prepared) unfold(b *analysis.Body) analysis.Body {
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
