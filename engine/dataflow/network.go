// Package dataflow keeps derived relations up to date: it rewrites a checked
// program for a set of goals so that only demanded rows are derived, compiles
// plans from the rules, and carries each change of a base relation or of a demand
// through them. Rows count their derivations. Recursive rows also have ranks, the
// order in which they entered, count apart the derivations by older rows, and fall
// with the last of these.
//
// Its unit is the Network. It interns nothing but constants, knows no journal, no
// views' clients and no time. One goroutine, the graph's loop, does everything to
// a network; package engine is its only user.
package dataflow

import (
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// Flags that the network keeps in rows. Those from FlagsFree on are the caller's,
// in the results of goals only.
const (
	wanted    relation.Flags = 2 << iota // an input row, or one in a window, to be visible
	queued                               // in its predicate's queue or among the candidates
	fallen                               // among its component's dead; see isStanding
	ordered                              // among those that a window chooses from
	Held                                 // the caller still needs the row, even if invisible
	FlagsFree                            // the first flag that the network leaves alone
)

// Symbols turns values into ids and orders ids.
type Symbols interface {
	// ID returns the id of a constant or of the result of a computation, one id for
	// each value.
	ID(v value.Value) (value.ID, error)
	// Value returns what an id stands for.
	Value(id value.ID) value.Value
	// Compare orders what two ids stand for, as value.Compare does.
	Compare(a, b value.ID) int
}

// Config is what a network is made from.
type Config struct {
	Program *Prepared
	Symbols Symbols
	// Tables holds the table of each base relation by its RelationID, nil for
	// derived relations. A network that is not transient maintains them.
	Tables []*relation.Relation
	Goals  []*analysis.Query
	// Replaces, if not nil, is what a network that is not transient takes rows over from.
	Replaces *Replaces
	// Uses, if not nil, counts what the rows of the network's own tables and the
	// constants of its program hold. That of the base tables is the caller's matter.
	Uses relation.Symbols
	// OnResult, if not nil, is called for each row of a goal's result after it
	// became visible or invisible. It must not change the network.
	OnResult func(goal int, row relation.RowID)
	// Transient says that the network is for one evaluation: it takes demand once
	// and no base changes, and makes no index on a base table unless scans would
	// cost more. The tables must not change during its life, unless they are read
	// through a pin.
	Transient bool
	// Pin is the state of the base tables that a transient network reads. They may
	// change while Limits.Cancelled runs, if it is not Now.
	Pin relation.Pin
}

// Network is a compiled program with all that is derived from its tables under
// the present demand.
type Network struct {
	program    *analysis.Program
	levels     []level
	symbols    Symbols
	onResult   func(goal int, row relation.RowID)
	transient  bool
	pin        relation.Pin
	predicates []*predicate
	inputs     map[analysis.RelationID]*predicate
	tables     []*relation.Relation
	uses       relation.Symbols
	constants  []value.ID // retained
	components []*component
	goals      []*goal
	queries    []*analysis.Query // of the goals
	clauses    [][]int           // the indexes of each relation's rules
	rules      []*rule
	prepared   *Prepared
	patterns   map[pattern]demanded
	failures   []*failures
	failing    int // visible rows of failures
	used       map[*relation.Index]bool
	detached   map[detachedKey]*relation.Index

	work     []int // numbers of the queued components, a heap
	inserted int
	deleted  int

	// The evaluation in progress.
	registers []value.ID
	plan      *plan
	started   place // the row that a reader's plan starts from
	sign      int
	stop      bool // the network halted
	recount   recounter
	err       error
	direct    direct

	meter
	limits Limits
	// errorsChanged tells that rows of failures came or went.
	errorsChanged bool
	trail         trail
	undoing       int    // the sign of the derivations that a stopped change undoes now, or 0
	undoLeft      uint64 // derivations until it is undone
}

type goal struct {
	root, result *predicate
	outputs      []Source
	doubts       []doubt // how each of the network's failures touches it; made when needed
}

// New compiles a network. Nothing is derived before the first demand. Its errors
// are those of Symbols. Unless it is transient, it adds the indexes that its plans
// need to the tables; see KeepIndexes.
func New(c Config) (*Network, error) {
	compiling := c
	constants := &recorder{Symbols: c.Symbols}
	compiling.Symbols = constants
	t, err := transform(compiling)
	if err != nil {
		return nil, err
	}
	n := &Network{
		program: t.program, levels: t.levels, queries: c.Goals, clauses: t.prepared.clauses,
		symbols: c.Symbols, uses: c.Uses, onResult: c.OnResult,
		transient: c.Transient, pin: c.Pin, tables: c.Tables, goals: t.goals,
		used: make(map[*relation.Index]bool),
	}
	n.trail.off = c.Transient
	n.liftLimits()
	if !c.Transient {
		for id, table := range c.Tables {
			if table != nil {
				t.input(analysis.RelationID(id))
			}
		}
	}
	if c.Replaces != nil {
		t.takeOver(c.Replaces)
		n.trail.marked = true
	}
	n.predicates, n.inputs = t.predicates, t.inputs
	n.rules, n.prepared, n.patterns = t.rules, t.prepared, t.patterns
	n.listFailures(t.failures)
	n.connect(t.rules)
	n.compile(t.rules)
	if n.uses != nil {
		n.constants = constants.ids
		n.uses.RetainRow(n.constants)
	}
	return n, nil
}

// recorder remembers the ids that it gives.
type recorder struct {
	Symbols
	ids []value.ID
}

func (r *recorder) ID(v value.Value) (value.ID, error) {
	id, err := r.Symbols.ID(v)
	r.ids = append(r.ids, id)
	return id, err
}

// valueUses counts the values of an aggregation's groups, whose rows are the number of
// the group and a value.
type valueUses struct{ relation.Symbols }

func (u valueUses) RetainRow(row []value.ID) { u.Symbols.RetainRow(row[1:]) }

func (u valueUses) ReleaseRow(row []value.ID) { u.Symbols.ReleaseRow(row[1:]) }

// Abandon releases what the network's rows and constants hold, about rows of them at a
// time, and reports whether there is more. Nothing else may be done with the network
// once that has begun.
func (n *Network) Abandon(rows int) (more bool) {
	if n.uses == nil {
		return false
	}
	n.uses.ReleaseRow(n.constants)
	n.constants = nil
	for ; len(n.predicates) > 0; n.predicates = n.predicates[1:] {
		p := n.predicates[0]
		if p.kind == base || p.isLent {
			continue
		}
		if p.table.Abandon(rows) || p.window != nil && p.window.groups.Abandon(rows) {
			return true
		}
		if p.aggregation != nil {
			for _, d := range p.aggregation.values {
				if d.table.Abandon(rows) {
					return true
				}
			}
		}
	}
	return false
}

// connected returns the component of each predicate, the number of components, and
// which predicates read themselves.
func connected(predicates []*predicate, rules []*rule) (numbers []int, count int, self []bool) {
	edges := make([][]int, len(predicates))
	self = make([]bool, len(predicates))
	for _, r := range rules {
		head := r.head.predicate.number
		for _, a := range r.body {
			edges[head] = append(edges[head], a.predicate.number)
			self[head] = self[head] || a.predicate.number == head
		}
		if r.computations != nil {
			failure := r.failure.predicate.number
			for _, a := range r.body {
				edges[failure] = append(edges[failure], a.predicate.number)
			}
		}
	}
	for _, p := range predicates {
		if a := p.aggregation; a != nil {
			for _, to := range []*predicate{a.output.predicate, a.failed.predicate} {
				edges[to.number] = append(edges[to.number], p.number)
			}
		}
	}
	numbers, count = stronglyConnected(edges)
	return numbers, count, self
}

// connect groups the predicates into components and makes their tables.
func (n *Network) connect(rules []*rule) {
	numbers, count, self := connected(n.predicates, rules)
	n.components = make([]*component, count)
	for i := range n.components {
		n.components[i] = &component{number: i}
	}
	for i, p := range n.predicates {
		c := n.components[numbers[i]]
		c.members = append(c.members, p)
		c.recursive = c.recursive || self[i] || len(c.members) > 1
		p.component = c
	}
	for _, p := range n.predicates {
		switch {
		case p.kind == base: // the caller's table
		case p.from != nil:
			n.adopt(p)
			continue
		case p.kind == root:
			p.table = relation.New(p.arity, 0)
		case p.aggregation != nil:
			p.table = relation.New(p.arity, p.aggregation.counters)
		case p.component.recursive:
			p.table = relation.New(p.arity, supportCounters)
		default:
			p.table = relation.New(p.arity, 1)
		}
		n.makeAggregates(p)
		if n.uses != nil && p.kind != base {
			p.table.Retain(n.uses)
			if p.window != nil {
				p.window.groups.Retain(n.uses)
			}
			if p.aggregation != nil {
				for _, d := range p.aggregation.values {
					d.table.Retain(valueUses{n.uses})
				}
			}
		}
	}
}

// compile makes the plans. A transient network only ever gains rows, and none of
// its base: it needs no plans that start from base rows.
func (n *Network) compile(rules []*rule) {
	registers := 0
	for _, r := range rules {
		registers = max(registers, r.registers)
		for i, a := range r.body {
			if n.transient && a.predicate.kind == base {
				continue
			}
			a.predicate.readers = append(a.predicate.readers, n.newPlan(r, i))
		}
		if recounting && !n.transient {
			p := r.head.predicate
			p.proofs = append(p.proofs, n.newPlan(r, fromHead))
			if r.computations != nil {
				p = r.failure.predicate
				p.proofs = append(p.proofs, n.newPlan(r, fromFailure))
			}
		}
	}
	n.registers = make([]value.ID, registers)
	n.findDirect(rules)
	n.findSole(rules)
}

// KeepIndexes forgets the indexes that no plan of this network uses. Call it when the
// network takes over tables from another, or gets them back.
func (n *Network) KeepIndexes() {
	for _, p := range n.predicates {
		p.table.KeepIndexes(func(ix *relation.Index) bool { return n.used[ix] })
	}
}

// Insert puts a row into a base relation; it takes effect with Settle.
func (n *Network) Insert(id analysis.RelationID, row []value.ID) {
	n.want(n.inputs[id], row)
}

// Delete takes a row out of a base relation; it takes effect with Settle. A row
// that is not there is left alone.
func (n *Network) Delete(id analysis.RelationID, row []value.ID) {
	p := n.inputs[id]
	if at, ok := p.table.Find(row); ok {
		n.unwant(p, at)
	}
}

// Demand asks for a goal at one value for each of its parameters, and returns the
// row that stands for the demand until it is withdrawn. It takes effect with
// Settle.
func (n *Network) Demand(goal int, key []value.ID) relation.RowID {
	return n.want(n.goals[goal].root, key)
}

// Withdraw ends a demand; it takes effect with Settle.
func (n *Network) Withdraw(goal int, row relation.RowID) {
	n.unwant(n.goals[goal].root, row)
}

func (n *Network) want(p *predicate, row []value.ID) relation.RowID {
	id, _ := p.table.Add(row)
	if p.table.Flags(id)&wanted == 0 {
		p.table.SetFlags(id, wanted)
		n.note(p, row, 1)
		n.enqueue(p, id)
	}
	return id
}

func (n *Network) unwant(p *predicate, id relation.RowID) {
	if p.table.Flags(id)&wanted != 0 {
		p.table.ClearFlags(id, wanted)
		n.note(p, p.table.Row(id), 0)
		n.enqueue(p, id)
	}
}

// DemandRow returns the row that stands for a demand, and false if there is none.
func (n *Network) DemandRow(goal int, key []value.ID) (relation.RowID, bool) {
	return n.goals[goal].root.table.Find(key)
}

// Result returns the table of a goal's result: its parameters, then the output
// variables, each once. Rows that are flagged Held may be invisible.
func (n *Network) Result(goal int) *relation.Relation { return n.goals[goal].result.table }

// Outputs tells where each output column of a goal comes from.
func (n *Network) Outputs(goal int) []Source { return n.goals[goal].outputs }

// Hold keeps a result row, visible or not, until Release. It reports whether the
// row was not held yet.
func (n *Network) Hold(goal int, row relation.RowID) bool {
	table := n.goals[goal].result.table
	if table.Flags(row)&Held != 0 {
		return false
	}
	table.SetFlags(row, Held)
	return true
}

// Release ends Hold, and drops the row if nothing else keeps it.
func (n *Network) Release(goal int, row relation.RowID) {
	p := n.goals[goal].result
	p.table.ClearFlags(row, Held)
	n.dropIfIdle(p, row)
}

// DerivedRows returns the number of rows that are derived: demands, rows under
// demand, results, and what aggregates and windows keep besides.
func (n *Network) DerivedRows() int {
	rows := 0
	for _, p := range n.predicates {
		if !p.kind.isInput() {
			rows += p.kept()
		}
	}
	return rows
}

// Bytes returns the memory of all tables and indexes, the base tables included.
func (n *Network) Bytes() int {
	bytes := 0
	for _, p := range n.predicates {
		bytes += p.table.Bytes() + p.groupBytes()
	}
	return bytes
}

// Returned returns how many rows of recursive rules have fallen since New and come back,
// since they had another proof.
func (n *Network) Returned() uint64 { return n.returned }

// Steps returns the number of steps that evaluation has taken since New.
func (n *Network) Steps() uint64 { return n.steps }
