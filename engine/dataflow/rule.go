package dataflow

import (
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// predicate is a relation of the network: a base relation, the demand of a goal
// or of a derived relation under one binding pattern, the rows derived under that
// demand, the bindings between two stages of a body, the bindings whose computation
// fails, or the result of a goal.
type predicate struct {
	number int
	arity  int
	table  *relation.Relation // made when components are known, but for base
	kind   predicateKind
	goal   int // of a root or a result
	// of is the derived relation that the predicate belongs to, -1 for others.
	of analysis.RelationID

	block block
	// from is the predicate of another network whose rows this one took over.
	from *predicate
	// isLent tells that the rows are another network's to abandon.
	isLent bool

	component *component
	// With an aggregation, what is derived are bindings, not rows. With a window,
	// only some of the derived rows become visible.
	aggregation *aggregation
	window      *window

	readers []*plan // one for each body atom of this predicate that may change
	proofs  []*plan // one for each rule with this head, made for recounting only

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
	root    // the demand of a goal: its rows come from outside, like those of base
	demand  // the derived demand of a derived relation
	failure // the bindings of a clause whose computation fails; no rule reads it
)

// isInput reports whether the predicate's rows are put in from outside.
func (k predicateKind) isInput() bool { return k == base || k == root }

// operand is a register, or one of the following with register < 0.
type operand struct {
	register int
	constant value.ID
}

const (
	constant = -1 // the operand's constant
	anything = -2 // a column of a negated atom that may hold anything
)

// atom is an occurrence of a predicate in a rule. A negated one holds if no row
// matches.
type atom struct {
	predicate *predicate
	terms     []operand
	negated   bool
}

func (a atom) equal(b atom) bool {
	if a.predicate != b.predicate || a.negated != b.negated {
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

// computation sets register out to a function of its operands, or if the register
// has a value already tests that it is the same.
type computation struct {
	out      int
	function *builtin.Function
	args     []operand
}

// Clause names a clause of a program: Rule is its index in Program.Rules, or -1 for
// the body of the goal with the index Goal.
type Clause struct {
	Rule, Goal int
}

// rule is a clause, or one stage of it, after the demand transformation. Body order
// is that in which demand is passed on; plans choose their own.
type rule struct {
	clause Clause
	block  block
	head   atom
	body   []atom
	// The computations come last, in order: each filter is tested as soon as its
	// operands are known, and no computation is made for what a filter could stop.
	filters      []filter
	computations []computation
	late         []filter // tested after all computations
	failure      atom     // what is derived instead if a computation fails
	registers    int
	// variables are those of the body whose values the registers hold; for Explain.
	variables []analysis.Variable
	// strict tells that every body atom counts for stratification as if negated.
	strict bool
}

// boundSet is the set of registers that have a value.
type boundSet []bool

func (b boundSet) has(t operand) bool {
	return t.register == constant || t.register >= 0 && b[t.register]
}

func (b boundSet) hasAll(terms []operand) bool {
	for _, t := range terms {
		if t.register != anything && !b.has(t) {
			return false
		}
	}
	return true
}

func (b boundSet) bind(a atom) {
	if a.negated {
		return
	}
	for _, t := range a.terms {
		if t.register >= 0 {
			b[t.register] = true
		}
	}
}
