package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// plan evaluates one rule from one row of a body atom that changes. With the build
// tag invariants there are also plans that start from a row of the head or of the
// failures.
type plan struct {
	rule    *rule
	head    sink
	failure sink // of a rule that computes

	// Of the row that starts it: constants and repeated registers to check,
	// columns to load.
	constants []columnOperand
	binds     []columnRegister
	repeats   []columnRegister

	steps []step
	// flips tells that the plan starts from a negated atom: what it finds goes
	// when the row comes.
	flips bool
	// inside tells that the starting row's predicate is of the head's own
	// recursive component; insiders are the steps whose predicates are.
	inside   bool
	insiders []int

	// other is the same plan driven from a demand: it scans the rows of driver
	// first. It is taken where they are fewer than the rows that the first lookup,
	// which is step first, would find: a write that meets a million rows then costs
	// as many probes as there are keys. nil where the demand is bound anyway.
	other  *plan
	driver *predicate
	first  int

	meter planMeter
}

// sink is where a plan puts what it derives.
type sink struct {
	predicate *predicate
	from      []operand
	row       []value.ID // scratch
}

func sinkOf(a atom) sink {
	return sink{a.predicate, a.terms, make([]value.ID, len(a.terms))}
}

type columnOperand struct {
	column  int
	operand operand
}

type columnRegister struct {
	column, register int
}

type stepKind uint8

const (
	// Tests, which come out one way.
	stepFilter  stepKind = iota // go on if a comparison holds
	stepAbsent                  // go on if no row exists
	stepCompute                 // go on with the result of a function
	stepMeter                   // count, and go on
	stepTimer                   // run the rest, and time it

	stepProbe  // go on if the row exists
	stepLookup // go on with each row of a posting list
	stepScan   // go on with each row
)

// step is one stage of a plan: it checks or extends the registers.
type step struct {
	kind      stepKind
	access    stepKind // of a negated atom: how its rows are found
	predicate *predicate
	index     *relation.Index
	key       []operand  // of a probe or lookup
	keyRow    []value.ID // scratch
	checks    []columnOperand
	binds     []columnRegister
	repeats   []columnRegister
	// exclude leaves out the row that started the plan: this atom stands right of
	// it in the rule and has the same predicate, so that a derivation that uses
	// the row twice is counted once.
	exclude bool
	// inside: the atom is of the head's own recursive component, and the step
	// notes its present row, whose rank will be asked for.
	inside bool
	row    relation.RowID
	filter filter
	pin    relation.Pin // through which base rows are read

	meter       *stepCount
	computation computation
	tests       bool // the result is known, and is compared with
	values      []value.Value

	// Of a step without an index in a transient network: the columns that it
	// could look up, and how many scans it has made.
	wanted relation.Columns
	scans  int
}

// planner makes the plans of one rule.
type planner struct {
	network *Network
	rule    *rule
	plan    *plan
	start   int
	bound   boundSet
	filters []bool // placed
	taken   []bool // body atoms
}

// The plans that do not start from a body atom.
const (
	fromHead    = -1
	fromFailure = -2
)

// newPlan compiles r for a row of body atom start, or of its head or failures.
func (n *Network) newPlan(r *rule, start int) *plan {
	pl := n.planFrom(r, start, -1)
	for pl.first < len(pl.steps) && pl.steps[pl.first].kind == stepAbsent {
		pl.first++
	}
	if start < 0 || pl.first == len(pl.steps) || pl.steps[pl.first].kind != stepLookup {
		return pl
	}
	bound := make(boundSet, r.registers)
	for _, b := range pl.binds {
		bound[b.register] = true
	}
	for i, a := range r.body {
		isDemand := a.predicate.kind == demand || a.predicate.kind == root
		if i != start && isDemand && len(a.terms) > 0 && boundColumns(a.terms, bound) == 0 {
			pl.other, pl.driver = n.planFrom(r, start, i), a.predicate
			break
		}
	}
	return pl
}

// planFrom compiles r like newPlan, with body atom first as the plan's first step
// unless that is negative.
func (n *Network) planFrom(r *rule, start, first int) *plan {
	p := &planner{
		network: n, rule: r, bound: make(boundSet, r.registers),
		filters: make([]bool, len(r.filters)), taken: make([]bool, len(r.body)),
		plan: &plan{rule: r, head: sinkOf(r.head)}, start: start,
	}
	if r.computations != nil {
		p.plan.failure = sinkOf(r.failure)
	}
	p.load()
	p.placeTests()
	for i := p.next(first); i >= 0; i = p.next(-1) {
		p.place(i)
		p.placeTests()
	}
	for _, c := range r.computations {
		p.plan.steps = append(p.plan.steps, step{
			kind: stepCompute, computation: c, tests: p.bound[c.out],
			values: make([]value.Value, len(c.args)),
		})
		p.bound[c.out] = true
		p.placeTests()
	}
	for _, f := range r.late {
		p.plan.steps = append(p.plan.steps, step{kind: stepFilter, filter: f})
	}
	return p.plan
}

// place adds the step of a body atom.
func (p *planner) place(i int) {
	a := p.rule.body[i]
	p.taken[i] = true
	exclude := p.start >= 0 && i >= p.start &&
		a.predicate == p.rule.body[p.start].predicate
	s := p.step(a, exclude)
	if s.inside {
		p.plan.insiders = append(p.plan.insiders, len(p.plan.steps))
	}
	p.plan.steps = append(p.plan.steps, s)
	p.bound.bind(a)
}

// load says what to do with the row that the plan starts from. A row of a negated
// atom with columns that may hold anything changes something only if it is the one
// row that matches.
func (p *planner) load() {
	from := p.rule.head
	switch {
	case p.start >= 0:
		from = p.rule.body[p.start]
		p.plan.inside = p.isInside(from.predicate)
		p.plan.flips = from.negated
	case p.start == fromFailure:
		from = p.rule.failure
	}
	isOne := true
	for c, t := range from.terms[:from.predicate.arity] { // of a binding, the group
		switch {
		case t.register == anything:
			isOne = false
		case t.register == constant:
			p.plan.constants = append(p.plan.constants, columnOperand{c, t})
		case p.bound[t.register]:
			p.plan.repeats = append(p.plan.repeats, columnRegister{c, t.register})
		default:
			p.bound[t.register] = true
			p.plan.binds = append(p.plan.binds, columnRegister{c, t.register})
		}
	}
	if p.start < 0 {
		return
	}
	p.taken[p.start] = true
	if from.negated && !isOne {
		p.place(p.start)
	}
}

func (p *planner) isInside(q *predicate) bool {
	return q.component.recursive && q.component == p.rule.head.predicate.component
}

// next returns the untaken body atom that the plan should go on with, or -1. It is
// first unless that is negative. Negated atoms are tests.
func (p *planner) next(first int) int {
	if first >= 0 {
		return first
	}
	best, bestScore := -1, 0
	for i, a := range p.rule.body {
		if p.taken[i] || a.negated {
			continue
		}
		n := boundColumns(a.terms, p.bound).Len()
		last := p.isInside(a.predicate) || p.isBetterProbed(i)
		s := score(n, len(a.terms), a.predicate.kind, last)
		if best < 0 || s > bestScore {
			best, bestScore = i, s
		}
	}
	return best
}

// isBetterProbed reports whether a body atom is a recursive demand that an untaken
// base atom, which can be looked up as well, binds wholly. Its posting lists grow with
// what is reached, as when all that reaches one node is asked for.
func (p *planner) isBetterProbed(i int) bool {
	d := p.rule.body[i]
	if d.predicate.kind != demand || !d.predicate.component.recursive ||
		p.bound.hasAll(d.terms) {
		return false
	}
	return slices.ContainsFunc(p.untaken(), func(a atom) bool {
		if a.predicate.kind != base || boundColumns(a.terms, p.bound) == 0 {
			return false
		}
		for _, t := range d.terms {
			if !p.bound.has(t) && !slices.Contains(a.terms, t) {
				return false
			}
		}
		return true
	})
}

// untaken returns the positive body atoms that have no step yet.
func (p *planner) untaken() (out []atom) {
	for i, a := range p.rule.body {
		if !p.taken[i] && !a.negated {
			out = append(out, a)
		}
	}
	return out
}

// placeTests adds the filters and negated atoms whose operands have all become
// known: nothing is enumerated before a test that could have stopped it.
func (p *planner) placeTests() {
	for i, f := range p.rule.filters {
		if !p.filters[i] && p.bound.has(f.left) && p.bound.has(f.right) {
			p.filters[i] = true
			p.plan.steps = append(p.plan.steps, step{kind: stepFilter, filter: f})
		}
	}
	for i, a := range p.rule.body {
		if !p.taken[i] && a.negated && p.bound.hasAll(a.terms) {
			p.place(i)
		}
	}
}

func (p *planner) step(a atom, exclude bool) step {
	s := step{predicate: a.predicate, exclude: exclude, inside: p.isInside(a.predicate)}
	if a.predicate.kind == base {
		s.pin = p.network.pin
	}
	bound := boundColumns(a.terms, p.bound)
	keyed := bound
	switch {
	case bound.Len() == len(a.terms):
		s.kind = stepProbe
	case bound == 0:
		s.kind = stepScan
	case p.network.transient && a.predicate.kind == base:
		s.kind = stepLookup
		s.index = a.predicate.table.BestIndex(bound)
		if s.index == nil {
			s.kind, s.wanted = stepScan, bound
			keyed = 0
			break
		}
		keyed = s.index.Columns()
	default:
		s.kind = stepLookup
		s.index = a.predicate.table.Index(bound)
		p.network.used[s.index] = true
	}
	if a.negated {
		s.kind, s.access = stepAbsent, s.kind
	}
	fresh := make(map[int]bool)
	for c, t := range a.terms {
		switch {
		case keyed.Has(c):
			s.key = append(s.key, t)
		case t.register == anything:
		case bound.Has(c):
			s.checks = append(s.checks, columnOperand{c, t})
		case fresh[t.register]:
			s.repeats = append(s.repeats, columnRegister{c, t.register})
		default:
			fresh[t.register] = true
			s.binds = append(s.binds, columnRegister{c, t.register})
		}
	}
	s.keyRow = make([]value.ID, len(s.key))
	return s
}
