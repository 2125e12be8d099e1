package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
)

// unfoldedAtomsMax bounds the atoms of a body after unfolding.
const unfoldedAtomsMax = 32

// Prepared is a program with what every network of it needs to know. It belongs to
// the goroutine that makes the networks.
type Prepared struct {
	program    *analysis.Program
	clauses    [][]int // the indexes of each relation's rules
	reads      [][]int // the relations that each relation's rules read
	components []int   // of the relations, by what their rules read
	passes     []relation.Columns
	plain      bool // nothing is unfolded or factored; see PreparePlain
	// definitions holds what definition found out, by relation.
	definitions map[analysis.RelationID]*analysis.Rule
}

// Prepare looks at a program once, for the networks that will be made from it.
func Prepare(p *analysis.Program) *Prepared {
	u := &Prepared{
		program: p, clauses: make([][]int, len(p.Relations)),
		reads:       make([][]int, len(p.Relations)),
		passes:      make([]relation.Columns, len(p.Relations)),
		definitions: make(map[analysis.RelationID]*analysis.Rule),
	}
	for i := range u.passes {
		u.passes[i] = ^relation.Columns(0)
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		head := r.Head.Relation
		u.clauses[head] = append(u.clauses[head], i)
		for _, a := range r.Body.Atoms {
			u.reads[head] = append(u.reads[head], int(a.Relation))
		}
		for _, a := range r.Body.Negations {
			u.reads[head] = append(u.reads[head], int(a.Relation))
		}
		u.passes[head] &= passable(r)
	}
	u.components, _ = stronglyConnected(u.reads)
	return u
}

// passable returns the columns of a clause's head through which demand passes:
// constants, and variables that an atom of the first stage binds. A demand for the
// result of a computation or an aggregate would not narrow what has to be computed;
// without it all readers share one copy.
func passable(r *analysis.Rule) relation.Columns {
	st := stagesOf(&r.Body, 0)
	var set relation.Columns
	for c, t := range r.Head.Terms {
		switch {
		case r.Aggregates != nil && r.Aggregates[c].Kind != analysis.NoAggregate:
		case t.IsConst(), st.variables[t.Var] == 0 && !st.computed[t.Var]:
			set |= 1 << c
		}
	}
	return set
}

// definition returns the one clause of a simple derived relation, itself unfolded,
// or nil. Simple are those of a single clause whose head is distinct variables and
// names every variable of its body, and that computes nothing. Each of their rows
// has just one derivation, so keeping the rows would save no work and cost memory, a
// demand, and a step in each change. A clause that projects variables away is no
// definition: unfolded, it would multiply derivations.
func (u *Prepared) definition(id analysis.RelationID) *analysis.Rule {
	if r, ok := u.definitions[id]; ok {
		return r
	}
	u.definitions[id] = nil // a relation that is met again meanwhile is recursive
	clauses := u.clauses[id]
	if !u.plain && len(clauses) == 1 && isSimple(&u.program.Rules[clauses[0]]) {
		r := u.program.Rules[clauses[0]]
		r.Body = u.unfold(&r.Body, 0)
		isSelf := func(a analysis.Atom) bool { return a.Relation == id }
		if !slices.ContainsFunc(r.Body.Atoms, isSelf) {
			u.definitions[id] = &r
		}
	}
	return u.definitions[id]
}

func isSimple(r *analysis.Rule) bool {
	if r.Aggregates != nil || len(r.Body.Computations) > 0 {
		return false
	}
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

// unfold returns b, whose first variables are parameters, with the atoms of simple
// relations replaced by their definitions, where that does not make it too long. The
// result's first variables are those of b. Atoms after the first stage stay, so that
// the stages, which row errors depend on, are those of b.
func (u *Prepared) unfold(b *analysis.Body, parameters int) analysis.Body {
	st := stagesOf(b, parameters)
	out := *b
	out.Atoms = nil
	out.Variables = slices.Clone(b.Variables)
	out.Negations = slices.Clone(b.Negations)
	out.Comparisons = slices.Clone(b.Comparisons)
	for i, a := range b.Atoms {
		var d *analysis.Rule
		if u.program.Relations[a.Relation].Derived && st.atoms[i] == 0 {
			d = u.definition(a.Relation)
		}
		rest := len(b.Atoms) - i - 1
		if d == nil || len(out.Atoms)+len(d.Body.Atoms)+rest > unfoldedAtomsMax ||
			len(out.Negations)+len(d.Body.Negations) > unfoldedAtomsMax {
			out.Atoms = append(out.Atoms, a)
			continue
		}
		insert(&out, d, a.Terms)
	}
	return out
}

// insert adds the body of a definition to b, its head's variables replaced.
func insert(b *analysis.Body, d *analysis.Rule, head []analysis.Term) {
	terms := make([]analysis.Term, len(d.Body.Variables))
	inHead := make([]bool, len(terms))
	for c, t := range d.Head.Terms {
		terms[t.Var], inHead[t.Var] = head[c], true
	}
	for _, a := range d.Body.Atoms {
		b.Atoms = append(b.Atoms, substituteAll(a, terms))
	}
	for _, a := range d.Body.Negations {
		for _, t := range a.Terms {
			if !t.IsConst() && !inHead[t.Var] { // a column that may hold anything
				terms[t.Var] = analysis.Term{Var: len(b.Variables)}
				b.Variables = append(b.Variables, d.Body.Variables[t.Var])
			}
		}
		b.Negations = append(b.Negations, substituteAll(a, terms))
	}
	for _, c := range d.Body.Comparisons {
		b.Comparisons = append(b.Comparisons, analysis.Comparison{
			Op: c.Op, Left: substitute(c.Left, terms), Right: substitute(c.Right, terms),
		})
	}
}

func substituteAll(a analysis.Atom, terms []analysis.Term) analysis.Atom {
	out := analysis.Atom{Relation: a.Relation, Terms: make([]analysis.Term, len(a.Terms))}
	for i, t := range a.Terms {
		out.Terms[i] = substitute(t, terms)
	}
	return out
}

func substitute(t analysis.Term, terms []analysis.Term) analysis.Term {
	if t.IsConst() {
		return t
	}
	return terms[t.Var]
}
