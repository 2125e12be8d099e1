package dataflow

import (
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// plan evaluates one rule from one row of a body atom that changes. With the build
// tag invariants there are also plans that start from a row of the head.
type plan struct {
	head     *predicate
	headFrom []operand
	headRow  []value.ID // scratch

	// Of the row that starts it: constants and repeated registers to check,
	// columns to load.
	constants []columnOperand
	binds     []columnRegister
	repeats   []columnRegister

	steps []step
	// inside tells that the starting row's predicate is of the head's own
	// recursive component; insiders are the steps whose predicates are.
	inside   bool
	insiders []int

	// other is the same plan driven from a demand: it scans the rows of driver
	// first. It is taken where they are fewer than the rows that the first step
	// would look up: a write that meets a million rows then costs as many probes
	// as there are keys. nil where the demand is bound anyway.
	other  *plan
	driver *predicate
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
	stepFilter stepKind = iota // go on if a comparison holds
	stepProbe                  // go on if the row exists
	stepLookup                 // go on with each row of a posting list
	stepScan                   // go on with each row
)

// step is one stage of a plan: it checks or extends the registers.
type step struct {
	kind      stepKind
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
	bound   boundSet
	filters []bool // placed
}

// newPlan compiles r for a row of body atom start, or for its head with start < 0.
func (n *Network) newPlan(r *rule, start int) *plan {
	pl := n.planFrom(r, start, -1)
	if start < 0 || len(pl.steps) == 0 || pl.steps[0].kind != stepLookup {
		return pl
	}
	bound := make(boundSet, r.registers)
	bound.bind(r.body[start])
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
		filters: make([]bool, len(r.filters)),
		plan: &plan{
			head: r.head.predicate, headFrom: r.head.terms,
			headRow: make([]value.ID, len(r.head.terms)),
		},
	}
	p.load(start)
	taken := make([]bool, len(r.body))
	if start >= 0 {
		taken[start] = true
	}
	p.placeFilters()
	for i := p.next(taken, first); i >= 0; i = p.next(taken, -1) {
		taken[i] = true
		exclude := start >= 0 && i > start && r.body[i].predicate == r.body[start].predicate
		s := p.step(r.body[i], exclude)
		if s.inside {
			p.plan.insiders = append(p.plan.insiders, len(p.plan.steps))
		}
		p.plan.steps = append(p.plan.steps, s)
		p.bound.bind(r.body[i])
		p.placeFilters()
	}
	return p.plan
}

// load says what to do with the row that the plan starts from.
func (p *planner) load(start int) {
	from := p.rule.head
	if start >= 0 {
		from = p.rule.body[start]
		p.plan.inside = p.isInside(from.predicate)
	}
	for c, t := range from.terms {
		switch {
		case t.register < 0:
			p.plan.constants = append(p.plan.constants, columnOperand{c, t})
		case p.bound[t.register]:
			p.plan.repeats = append(p.plan.repeats, columnRegister{c, t.register})
		default:
			p.bound[t.register] = true
			p.plan.binds = append(p.plan.binds, columnRegister{c, t.register})
		}
	}
}

func (p *planner) isInside(q *predicate) bool {
	return q.component.recursive && q.component == p.rule.head.predicate.component
}

// next returns the untaken body atom that the plan should go on with, or -1. It is
// first unless that is negative.
func (p *planner) next(taken []bool, first int) int {
	if first >= 0 {
		return first
	}
	best, bestScore := -1, 0
	for i, a := range p.rule.body {
		if taken[i] {
			continue
		}
		n := boundColumns(a.terms, p.bound).Len()
		s := score(n, len(a.terms), a.predicate.kind, p.isInside(a.predicate))
		if best < 0 || s > bestScore {
			best, bestScore = i, s
		}
	}
	return best
}

// placeFilters adds the filters whose sides have both become known: nothing is
// enumerated before a comparison that could have stopped it.
func (p *planner) placeFilters() {
	for i, f := range p.rule.filters {
		if !p.filters[i] && p.bound.has(f.left) && p.bound.has(f.right) {
			p.filters[i] = true
			p.plan.steps = append(p.plan.steps, step{kind: stepFilter, filter: f})
		}
	}
}

func (p *planner) step(a atom, exclude bool) step {
	s := step{predicate: a.predicate, exclude: exclude, inside: p.isInside(a.predicate)}
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
	fresh := make(map[int]bool)
	for c, t := range a.terms {
		switch {
		case keyed.Has(c):
			s.key = append(s.key, t)
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
