package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/relation"
)

// match finds the blocks that are the same in both networks, by their own rules.
func (a *takeover) match() {
	a.matchRelations()
	a.blocks = contentsOf(a.next.predicates, a.next.rules, func(b block) block { return b })
	lost := 0 // blocks of old without a name in next
	names := make(map[block]block)
	a.oldBlocks = contentsOf(a.old.predicates, a.old.rules, func(b block) block {
		name, ok := names[b]
		if !ok {
			if name, ok = a.name(b); !ok {
				lost++
				name = goalBlockOf(-lost)
			}
			names[b] = name
		}
		return name
	})
	for b, c := range a.blocks {
		if old := a.oldBlocks[b]; old != nil && matchable(old.predicates, c.predicates) {
			a.kept[b] = true
			for i, p := range c.predicates {
				a.pair(old.predicates[i], p)
			}
		}
	}
	for b, c := range a.blocks {
		if a.kept[b] && !a.isSame(a.oldBlocks[b], c) {
			a.kept[b] = false
		}
	}
	for b, c := range a.blocks {
		if !a.kept[b] {
			for _, p := range c.predicates {
				a.unpair(p)
			}
			a.dropped = append(a.dropped, b)
		}
	}
}

func (a *takeover) pair(old, next *predicate) { a.same[old], a.keeps[next] = next, old }

func (a *takeover) unpair(next *predicate) {
	delete(a.same, a.keeps[next])
	delete(a.keeps, next)
}

// matchRelations finds the relations that have the same name, and the base relations
// that have the same table.
func (a *takeover) matchRelations() {
	for i := range a.old.program.Relations {
		id, ok := a.next.program.RelationNamed(a.old.program.Relations[i].Name)
		if !ok {
			id = -1
		}
		a.from = append(a.from, id)
	}
	tables := make(map[*relation.Relation]*predicate)
	for _, p := range a.next.inputs {
		tables[p.table] = p
	}
	for _, p := range a.old.inputs {
		if next := tables[p.table]; next != nil {
			a.pair(p, next)
		}
	}
}

// contentsOf sorts predicates and rules by the names of their blocks.
func contentsOf(predicates []*predicate, rules []*rule, name func(block) block,
) map[block]*contents {
	out := make(map[block]*contents)
	of := func(b block) *contents {
		b = name(b)
		if out[b] == nil {
			out[b] = &contents{}
		}
		return out[b]
	}
	for _, p := range predicates {
		if p.block.kind != 0 {
			c := of(p.block)
			c.predicates = append(c.predicates, p)
		}
	}
	for _, r := range rules {
		c := of(r.block)
		c.rules = append(c.rules, r)
	}
	return out
}

// name returns the name that a block of old has in next, and false if it has none.
func (a *takeover) name(b block) (block, bool) {
	ok := true
	switch b.kind {
	case goalBlock:
		b.goal, ok = a.goals[b.goal], a.hasGoal(b.goal)
	case patternBlock:
		b.pattern.relation = a.from[b.pattern.relation]
		ok = b.pattern.relation >= 0
	case failureBlock:
		b.failure.clause, ok = a.clause(b.failure.clause)
	}
	return b, ok
}

func (a *takeover) hasGoal(old int) bool {
	_, ok := a.goals[old]
	return ok
}

// clause returns what has the place of a clause of old in next: the clause of the
// same number among those of its relation.
func (a *takeover) clause(c Clause) (Clause, bool) {
	if c.Rule < 0 {
		goal, ok := a.goals[c.Goal]
		return Clause{Rule: -1, Goal: goal}, ok
	}
	head := a.old.program.Rules[c.Rule].Head.Relation
	at := slices.Index(a.old.clauses[head], c.Rule)
	id := a.from[head]
	if id < 0 || at >= len(a.next.prepared.clauses[id]) {
		return c, false
	}
	return Clause{Rule: a.next.prepared.clauses[id][at], Goal: -1}, true
}

// matchable reports whether the predicates of two blocks may be the same ones.
func matchable(old, next []*predicate) bool {
	return slices.EqualFunc(old, next, func(o, p *predicate) bool {
		return o.kind == p.kind && o.arity == p.arity &&
			(o.aggregation == nil) == (p.aggregation == nil) &&
			(o.window == nil) == (p.window == nil)
	})
}

// isSame reports whether a block of old and one of next, whose predicates are paired,
// derive the same from what is paired.
func (a *takeover) isSame(old, next *contents) bool {
	for i, p := range next.predicates {
		o := old.predicates[i]
		if p.kind == root &&
			!slices.Equal(a.old.goals[o.goal].outputs, a.next.goals[p.goal].outputs) {
			return false
		}
		if w := p.window; w != nil && (w.first != o.window.first || w.last != o.window.last ||
			!slices.Equal(w.group, o.window.group) || !slices.Equal(w.by, o.window.by)) {
			return false
		}
		if p.aggregation != nil && !a.isSameAggregation(o.aggregation, p.aggregation) {
			return false
		}
	}
	return slices.EqualFunc(old.rules, next.rules, a.isSameRule)
}

func (a *takeover) isSameAggregation(old, next *aggregation) bool {
	return old.groupColumns == next.groupColumns && old.counters == next.counters &&
		slices.Equal(old.columns, next.columns) && slices.Equal(old.nonNulls, next.nonNulls) &&
		slices.Equal(old.sums, next.sums) && slices.Equal(old.from, next.from) &&
		slices.EqualFunc(old.values, next.values, func(o, d *distinct) bool {
			return o.arg == d.arg && o.counter == d.counter && o.isSorted == d.isSorted
		}) &&
		a.isPaired(old.output.predicate, next.output.predicate) &&
		a.isPaired(old.failed.predicate, next.failed.predicate)
}

func (a *takeover) isPaired(old, next *predicate) bool {
	return old == nil && next == nil || next != nil && a.same[old] == next
}

func (a *takeover) isSameRule(old, next *rule) bool {
	clause, ok := a.clause(old.clause)
	return ok && clause == next.clause && old.strict == next.strict &&
		old.registers == next.registers &&
		a.isSameAtom(old.head, next.head) && a.isSameAtom(old.failure, next.failure) &&
		slices.EqualFunc(old.body, next.body, a.isSameAtom) &&
		slices.Equal(old.filters, next.filters) && slices.Equal(old.late, next.late) &&
		slices.EqualFunc(old.computations, next.computations, isSameComputation)
}

func (a *takeover) isSameAtom(old, next atom) bool {
	return a.isPaired(old.predicate, next.predicate) && old.negated == next.negated &&
		slices.Equal(old.terms, next.terms)
}

func isSameComputation(old, next computation) bool {
	return old.out == next.out && slices.Equal(old.args, next.args) &&
		isSameFunction(old.function, next.function)
}

// isSameFunction compares overloads: there is one of a name for parameters and a
// result of given kinds.
func isSameFunction(old, next *builtin.Function) bool {
	return old == next || old.Name == next.Name && old.Result == next.Result &&
		old.Variadic == next.Variadic && old.Nullable == next.Nullable &&
		slices.Equal(old.Params, next.Params)
}
