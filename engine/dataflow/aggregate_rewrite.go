package dataflow

import (
	"math"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// aggregating is an aggregating clause on its way to rules: what it groups by and
// aggregates, over the variables of body.
type aggregating struct {
	clause
	group   []operand
	columns []analysis.Aggregate
	args    []operand // of columns
	// from tells where the columns of the clause's head come from: a term of the
	// group, or with ^i column i of columns.
	from []int
}

// aggregated adds the rules of a clause that aggregates, for one pattern of its
// relation. c is the clause as if the arguments stood in place of the aggregates.
// With alone, the relation has no other clause.
func (t *transformer) aggregated(c clause, r *analysis.Rule, alone bool) error {
	g := aggregating{clause: c}
	for column, a := range r.Aggregates {
		if a.Kind == analysis.NoAggregate {
			g.from = append(g.from, len(g.group))
			g.group = append(g.group, c.head.terms[column])
		} else {
			g.from = append(g.from, ^len(g.columns))
			g.columns = append(g.columns, a)
			g.args = append(g.args, c.head.terms[column])
		}
	}
	if g.columns[0].Kind < analysis.TopK {
		return t.grouped(g)
	}
	if g.columns[0].Kind == analysis.WithinRadius {
		return t.chosen(g)
	}
	if !alone {
		rows := c.head.predicate
		g.head.predicate = t.newPredicate(derived, rows.arity)
		g.head.predicate.of = rows.of
		t.copyRows(c.name, g.head.predicate, rows)
	}
	return t.chosen(g)
}

// headTerms returns the terms of a clause's head, the arguments in the place of
// aggregates.
func headTerms(r *analysis.Rule) []analysis.Term {
	if r.Aggregates == nil {
		return r.Head.Terms
	}
	terms := slices.Clone(r.Head.Terms)
	for column, a := range r.Aggregates {
		if a.Kind != analysis.NoAggregate {
			terms[column] = a.Arg
		}
	}
	return terms
}

// aggregateStage stands for the stage of a failure of an aggregate.
const aggregateStage = -1

// grouped makes a clause the source of an aggregation that derives rows of the
// clause's head.
func (t *transformer) grouped(g aggregating) error {
	null, err := t.operand(analysis.ConstTerm(value.OfNull()))
	if err != nil {
		return err
	}
	a := &aggregation{
		null: null.constant, from: g.from, groupColumns: len(g.group), counters: firstFreeCounter,
		floats: new(floatSums),
	}
	terms := slices.Clone(g.group)
	for i, column := range g.columns {
		at := slices.Index(terms[len(g.group):], g.args[i]) + len(g.group)
		if at < len(g.group) {
			at = len(terms)
			terms = append(terms, g.args[i])
		}
		a.columns = append(a.columns, a.column(column.Kind, at, g.variable(column.Arg)))
	}
	a.cells = make([]value.ID, len(a.columns))
	output := g.head.predicate
	source := t.newPredicate(derived, len(g.group))
	source.of = output.of
	source.aggregation = a
	a.output = sink{predicate: output, row: make([]value.ID, output.arity)}
	failure := t.failed(failureKey{g.name, aggregateStage}, len(g.group))
	a.failed = sink{predicate: failure, row: make([]value.ID, failure.arity)}
	a.plan = namedPlan(g.name)
	g.head = atom{predicate: source, terms: terms}
	g.aggregates = true
	return t.clause(g.clause)
}

// variable returns the variable that an argument is, or one like a constant.
func (g *aggregating) variable(arg analysis.Term) analysis.Variable {
	if arg.IsConst() {
		return analysis.Variable{Type: arg.Const.Kind(), Nullable: arg.Const.IsNull()}
	}
	return g.body.Variables[arg.Var]
}

// namedPlan returns a plan for what a clause derives without one. It has no premises
// inside a recursive component.
func namedPlan(name Clause) *plan { return &plan{rule: &rule{clause: name}} }

// column plans the state that an aggregate of cell arg needs.
func (a *aggregation) column(kind analysis.AggregateKind, arg int, v analysis.Variable) aggregated {
	c := aggregated{kind: kind, count: bindingsCounter}
	if v.Nullable {
		at := slices.IndexFunc(a.nonNulls, func(o nonNull) bool { return o.arg == arg })
		if at < 0 {
			at = len(a.nonNulls)
			a.nonNulls = append(a.nonNulls, nonNull{arg, a.counters})
			a.counters++
		}
		c.count = a.nonNulls[at].counter
	}
	switch kind {
	case analysis.Sum, analysis.Avg:
		c.sum = slices.IndexFunc(a.sums, func(o sum) bool { return o.arg == arg })
		if c.sum < 0 {
			c.sum = len(a.sums)
			a.sums = append(a.sums, sum{arg, a.counters, v.Type == value.Float})
			a.counters++
			if v.Type != value.Float {
				a.counters++
			}
		}
	case analysis.CountDistinct, analysis.Min, analysis.Max:
		c.values = slices.IndexFunc(a.values, func(o *distinct) bool { return o.arg == arg })
		if c.values < 0 {
			c.values = len(a.values)
			a.values = append(a.values, &distinct{arg: arg, counter: a.counters})
			a.counters++
		}
		d := a.values[c.values]
		d.isSorted = d.isSorted || kind != analysis.CountDistinct
	}
	return c
}

// chosen makes the rows of a clause's head a window or, where every value counts,
// plain rows: an argument alone decides whether it is within a radius.
func (t *transformer) chosen(g aggregating) error {
	column, arg := g.columns[0], g.args[0]
	var filters []filter
	if g.variable(column.Arg).Nullable {
		null, err := t.operand(analysis.ConstTerm(value.OfNull()))
		if err != nil {
			return err
		}
		filters = append(filters, filter{ne, arg, null})
	}
	if column.Kind != analysis.TopK {
		threshold, err := t.operand(analysis.ConstTerm(column.Threshold))
		if err != nil {
			return err
		}
		op := le
		if column.Descending {
			op = ge
		}
		filters = append(filters, filter{op, arg, threshold})
	}
	if len(g.body.Computations) == 0 {
		g.early = filters
	} else {
		g.late = filters // bindings that are left out may fail, too
	}
	g.aggregates = true
	if column.Kind == analysis.WithinRadius {
		return t.clause(g.clause)
	}
	w := &window{last: clampRank(column.K), plan: namedPlan(g.name)}
	for c, from := range g.from {
		if from >= 0 {
			w.group = append(w.group, c)
		} else {
			w.by = []relation.Sort{{Column: c, Descending: column.Descending}}
		}
	}
	g.head.predicate.window = w
	return t.clause(g.clause)
}

// copyRows derives each row of one predicate in another.
func (t *transformer) copyRows(name Clause, from, to *predicate) {
	terms := make([]operand, from.arity)
	for i := range terms {
		terms[i] = operand{register: i}
	}
	t.addRule(&rule{
		clause: name, head: atom{predicate: to, terms: terms},
		body: []atom{{predicate: from, terms: terms}}, registers: len(terms),
	})
}

// limit makes a goal's result a window.
func (t *transformer) limit(g *goal, q *analysis.Query) {
	if q.Limit <= 0 {
		return
	}
	w := &window{first: clampRank(int64(q.Offset))}
	w.plan = namedPlan(Clause{Rule: -1, Goal: g.result.goal})
	w.last = clampRank(int64(w.first) + int64(q.Limit))
	parameters := len(q.Parameters)
	for c := range parameters {
		w.group = append(w.group, c)
	}
	isSorted := make([]bool, g.result.arity)
	by := func(column int, descending bool) {
		c := g.outputs[column].Column
		if c < parameters || isSorted[c] {
			return // the same in all rows of a key, or decided already
		}
		isSorted[c] = true
		w.by = append(w.by, relation.Sort{Column: c, Descending: descending})
	}
	for _, o := range q.Order {
		by(o.Column, o.Descending)
	}
	for column := range g.outputs {
		by(column, false)
	}
	g.result.window = w
}

func clampRank(rank int64) int { return int(min(max(rank, 0), math.MaxInt32)) }

// makeAggregates makes the tables of an aggregation or window.
func (n *Network) makeAggregates(p *predicate) {
	if w := p.window; w != nil {
		w.key = make([]value.ID, len(w.group))
		w.groups = relation.New(len(w.group), 1)
		w.order = relation.NewOrder(p.table, w.by, n.symbols)
	}
	if a := p.aggregation; a != nil {
		for _, d := range a.values {
			d.table = relation.New(2, 1)
			if d.isSorted {
				d.order = relation.NewOrder(d.table, []relation.Sort{{Column: 1}}, n.symbols)
			}
		}
	}
}

// kept returns the number of rows of a predicate that is not an input, with what its
// groups keep.
func (p *predicate) kept() int {
	rows := p.table.Len()
	if p.window != nil {
		rows = liveRows(p.table) // those outside of the window, too
	}
	if a := p.aggregation; a != nil {
		rows = liveRows(p.table)
		for _, d := range a.values {
			rows += liveRows(d.table)
		}
	}
	return rows
}

func liveRows(table *relation.Relation) int { return relation.RowsMax - table.Room() }

// groupBytes returns the memory of a predicate's groups besides its table.
func (p *predicate) groupBytes() int {
	bytes := 0
	if w := p.window; w != nil {
		bytes += w.groups.Bytes() + w.order.Bytes()
	}
	if a := p.aggregation; a != nil {
		bytes += a.floats.bytes()
		for _, d := range a.values {
			bytes += d.table.Bytes()
			if d.order != nil {
				bytes += d.order.Bytes()
			}
		}
	}
	return bytes
}
