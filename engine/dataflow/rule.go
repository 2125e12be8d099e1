package dataflow

import (
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// predicate is a relation of the network: a base relation, the demand of a goal
// or of a derived relation under one binding pattern, the rows derived under that
// demand, or the result of a goal.
type predicate struct {
	number int
	arity  int
	table  *relation.Relation // made when components are known, but for base
	kind   predicateKind
	goal   int // of a root or a result

	component *component
	readers   []*plan // one for each body atom of this predicate that may change
	proofs    []*plan // one for each rule with this head, made for recounting only

	// queue holds the rows, flagged queued, whose visibility may have to change.
	// Recursive predicates use their component's candidates and suspects instead.
	queue []relation.RowID
}

type predicateKind uint8

// The kinds stand in the order in which a plan prefers them when nothing else
// tells two atoms apart: probes of a demand fail soonest and base rows are found
// by indexes that exist anyway.
const (
	derived predicateKind = iota
	result
	base
	root   // the demand of a goal: its rows come from outside, like those of base
	demand // the derived demand of a derived relation
)

// isInput reports whether the predicate's rows are put in from outside.
func (k predicateKind) isInput() bool { return k == base || k == root }

// operand is a register or, with register < 0, a constant.
type operand struct {
	register int
	constant value.ID
}

// atom is an occurrence of a predicate in a rule.
type atom struct {
	predicate *predicate
	terms     []operand
}

func (a atom) equal(b atom) bool {
	if a.predicate != b.predicate {
		return false
	}
	for i, t := range a.terms {
		if t != b.terms[i] {
			return false
		}
	}
	return true
}

// comparison is the operator of a filter, in the numbering of package analysis.
type comparison uint8

const (
	eq = comparison(analysis.Eq)
	ne = comparison(analysis.Ne)
	lt = comparison(analysis.Lt)
	le = comparison(analysis.Le)
	gt = comparison(analysis.Gt)
	ge = comparison(analysis.Ge)
)

// filter is a comparison of two operands.
type filter struct {
	op          comparison
	left, right operand
}

// rule is a clause after the demand transformation. Body order is that in which
// demand is passed on; plans choose their own.
type rule struct {
	head      atom
	body      []atom
	filters   []filter
	registers int
}

// boundSet is the set of registers that have a value.
type boundSet []bool

func (b boundSet) has(t operand) bool { return t.register < 0 || b[t.register] }

func (b boundSet) bind(a atom) {
	for _, t := range a.terms {
		if t.register >= 0 {
			b[t.register] = true
		}
	}
}
