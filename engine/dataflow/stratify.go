package dataflow

import (
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
)

// level says how precisely a derived relation is demanded where it is negated or
// aggregated. Demand adds edges to the graph of what depends on what: what is asked
// of a negated relation depends on the atoms before the negation, and these may
// depend on that negation in turn, though the program itself is stratified.
type level uint8

const (
	// After all atoms of the body, so that they ask for as little as possible.
	_ level = iota
	// As soon as its variables are bound.
	early
	// By what its reader is asked for, and not by what the body finds.
	outer
	// All of it and of what it reads, as long as any key is watched that
	// leads there. Nothing of that depends on any demand but the goals' own, so
	// that the program's own stratification is all that counts.
	whole
)

// attemptsMax bounds how often precision is given up bit by bit; then every
// relation that is negated or aggregated is taken whole.
const attemptsMax = 8

// isStratified tells whether no cycle of the rules leads through a negation or an
// aggregate, and otherwise lowers the precision of the relations that are to blame.
func (t *transformer) isStratified(attempt int) bool {
	var strict, blamed []*rule
	for _, r := range t.rules {
		isStrict := func(a atom) bool { return a.negated || r.strict }
		if slices.ContainsFunc(r.body, isStrict) {
			strict = append(strict, r)
		}
	}
	if strict == nil {
		return true
	}
	components, _, _ := connected(t.predicates, t.rules)
	isCyclic := func(r *rule) func(atom) bool {
		return func(a atom) bool {
			return (a.negated || r.strict) &&
				components[a.predicate.number] == components[r.head.predicate.number]
		}
	}
	for _, r := range strict {
		if slices.ContainsFunc(r.body, isCyclic(r)) {
			blamed = append(blamed, r)
		}
	}
	switch {
	case len(blamed) == 0:
		return true
	case attempt > attemptsMax:
		panic("dataflow: the program is not stratified")
	case attempt == attemptsMax:
		blamed = strict
	}
	for _, r := range blamed {
		if r.strict {
			of := r.head.predicate.of
			if attempt == attemptsMax || of >= 0 && t.levels[of] == outer {
				t.lower(of, whole)
			} else {
				t.lower(of, outer)
			}
			continue
		}
		for _, a := range r.body {
			switch {
			case !a.negated:
			case attempt == attemptsMax:
				t.lower(a.predicate.of, whole)
			case isCyclic(r)(a):
				t.lower(a.predicate.of, t.levels[a.predicate.of]+1)
			}
		}
	}
	return false
}

// lower lowers the precision of a relation's demand to a level.
func (t *transformer) lower(id analysis.RelationID, to level) {
	if id < 0 {
		return // of a goal or a base relation
	}
	if to < whole {
		t.levels[id] = max(t.levels[id], to)
		return
	}
	t.reach(id, func(r analysis.RelationID) bool {
		isNew := t.levels[r] != whole
		t.levels[r] = whole
		return isNew
	})
}

// reach calls visit for a relation and what it reads, through those for which visit
// returns true.
func (t *transformer) reach(id analysis.RelationID, visit func(analysis.RelationID) bool) {
	for path := []int{int(id)}; len(path) > 0; {
		r := path[len(path)-1]
		path = path[:len(path)-1]
		if visit(analysis.RelationID(r)) {
			path = append(path, t.prepared.reads[r]...)
		}
	}
}

// demandWhole asks for all of a relation as long as a goal that leads to it is
// asked for anything.
func (t *transformer) demandWhole(demand *predicate, id analysis.RelationID,
	goals []*analysis.Query,
) {
	for i, q := range goals {
		seen := make([]bool, len(t.program.Relations))
		for _, atoms := range [][]analysis.Atom{q.Body.Atoms, q.Body.Negations} {
			for _, a := range atoms {
				t.reach(a.Relation, func(r analysis.RelationID) bool {
					isNew := !seen[r]
					seen[r] = true
					return isNew
				})
			}
		}
		if !seen[id] {
			continue
		}
		from := atom{predicate: t.goals[i].root}
		for v := range q.Parameters {
			from.terms = append(from.terms, operand{register: v})
		}
		t.block = goalBlockOf(i)
		t.addRule(&rule{
			clause: Clause{Rule: -1, Goal: i}, head: atom{predicate: demand},
			body: []atom{from}, registers: len(q.Parameters),
		})
	}
}

// noteWholes gives relations whose readers are asked for no column of theirs the level
// that they have in effect.
func (t *transformer) noteWholes() {
	for id, l := range t.levels {
		if _, ok := t.patterns[pattern{relation: analysis.RelationID(id)}]; ok && l == outer {
			t.levels[id] = whole
		}
	}
}

// Whole names a relation that is derived as a whole as long as a key is watched
// that needs any of it, and tells why.
type Whole struct {
	Relation analysis.RelationID
	Reason   string
}

// Wholes returns the relations that are derived as a whole because demand for
// single keys of them would depend on what they decide.
func (n *Network) Wholes() []Whole {
	var out []Whole
	for id, l := range n.levels {
		if l == whole && n.program.Relations[id].Derived {
			out = append(out, Whole{analysis.RelationID(id), fmt.Sprintf(
				"all of %s is derived: what would be asked of it by key depends on a "+
					"negation or an aggregate that depends on it", n.program.Relations[id].Name)})
		}
	}
	return out
}
