// Package engine is the face of the rule engine: it holds one graph's facts,
// program and watched keys, applies transactions, and tells which rows entered and
// left the result of each watched key. It reads no file, starts no goroutine and
// knows no protocol; the graph's write loop in package ingest calls it, and admin
// knows its types.
//
// An Engine is for one goroutine at a time, the loop's.
package engine

import (
	"errors"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// Errors that callers branch on; most come wrapped with the name concerned.
var (
	// ErrFull says that the graph has used all its ids or a relation all its rows.
	ErrFull = errors.New("the graph is full")
	// ErrUnknownRelation says that the program has no relation of that name.
	ErrUnknownRelation = errors.New("unknown relation")
	// ErrDerived says that rows were to be put into a relation that rules define.
	ErrDerived = errors.New("the relation is derived by rules and takes no facts")
	// ErrUnknownView says that the program has no view of that name.
	ErrUnknownView = errors.New("unknown view")
	// ErrArity says that a row, key or parameter list has the wrong length.
	ErrArity = errors.New("wrong number of values")
	// ErrType says that a value has not its column's type.
	ErrType = errors.New("wrong type")
	// ErrStaleQuery says that a query was analysed against another program.
	ErrStaleQuery = errors.New("the query was analysed against another program")
	// ErrBudget says that an evaluation went past a limit; see BudgetError.
	ErrBudget = dataflow.ErrBudget
	// ErrCancelled says that a query was cancelled.
	ErrCancelled = dataflow.ErrCancelled
)

// reported flags a result row that belongs to what Changes, or a snapshot, last
// told of its key, and so to the key's rows.
const reported = dataflow.FlagsFree

// Engine is a graph's facts, program and watched keys. Make one with New.
type Engine struct {
	clock     func() int64
	symbols   *value.Interner
	program   *analysis.Program
	limits    Limits
	prepared  *dataflow.Prepared
	network   *dataflow.Network
	profiled  *dataflow.Network    // the network whose plans are counted, or nil
	tables    []*relation.Relation // of base relations, by RelationID
	relations map[string]analysis.RelationID
	families  []*family // by the number of their view in program
	goals     []*part   // by the number of their goal in network
	views     map[string]*family

	pins          []*Pin // with those whose traces are being swept
	ticksPerPause uint64 // of pinned queries; less in tests

	revision uint64
	silent   bool   // result rows change as part of a snapshot, not of a commit
	watching *Key   // the only key whose result can change
	touched  []*Key // keys with unreported changes, by first touch; nil for those let go
	holes    int    // nils in touched, which is empty if it has no keys
	marks    []mark // of keys that the present transaction touched
	pending  []pendingRow
	// kept are the units whose pending rows Changes must not tell yet, among others
	// that had some, and keptRows how many rows that were.
	kept     []*unit
	keptRows int
	// baselines is how many units have one, whose ids no row need have.
	baselines int
	leaving   []abandoned // what went as a whole and still counts in the dictionary

	applies          uint64
	applyNanoseconds int64

	compiled compiledQueries
	asking   evaluator // of Query

	// Scratch that is used again by each call.
	cells   []value.ID
	skip    []bool
	targets []analysis.RelationID
	changed []relation.RowID
	present []value.ID
	changes []Change
}

// New returns an engine with an empty program. The clock gives nanoseconds and
// never goes back; it serves Stats only, and may be nil.
func New(clock func() int64) *Engine {
	e := &Engine{clock: clock, ticksPerPause: ticksPerPause, symbols: value.NewInterner()}
	if _, err := e.Deploy(&analysis.Program{}, false); err != nil {
		panic("engine: the empty program does not deploy")
	}
	e.revision = 0
	return e
}

// Program returns the deployed program; at first an empty one.
func (e *Engine) Program() *analysis.Program { return e.program }

// Facts calls yield for each row of a base relation, in no particular order, until
// it returns false. The row is valid during the call only. An unknown or derived
// relation has no facts.
func (e *Engine) Facts(name string, yield func(row []value.Value) bool) {
	id, ok := e.relations[name]
	if !ok || e.tables[id] == nil {
		return
	}
	table := e.tables[id]
	row := make([]value.Value, table.Arity())
	for at, ok := table.NextVisible(0); ok; at, ok = table.NextVisible(at + 1) {
		for c, cell := range table.Row(at) {
			row[c] = e.symbols.Value(cell)
		}
		if !yield(row) {
			return
		}
	}
}

// Stats is a measurement of an engine.
type Stats struct {
	Relations   []RelationStats
	Views       []ViewStats
	Facts       int    // rows of base relations
	DerivedRows int    // rows kept because keys are watched
	WatchedKeys int    // of all views
	Symbols     int    // values that have an entry in the dictionary
	Bytes       int    // memory of tables, indexes and dictionary
	Revision    uint64 // of the last Apply
	Applies     uint64 // calls of Apply since New
	Returned    uint64 // rows of recursive rules that fell and came back since Deploy
	// ApplyNanoseconds is the time spent since New in Apply, in Changes without its
	// callback, and in Rows; 0 without a clock.
	ApplyNanoseconds int64
}

// RelationStats measures a base relation.
type RelationStats struct {
	Name string
	Rows int
}

// ViewStats measures a view.
type ViewStats struct {
	Name        string
	WatchedKeys int
	Rows        int // of all its watched keys
}

// Stats measures the engine. It takes time in proportion to the program, not to
// the rows.
func (e *Engine) Stats() Stats {
	s := Stats{
		DerivedRows: e.network.DerivedRows(), Symbols: e.symbols.Len(),
		Bytes: e.network.Bytes() + e.symbols.Bytes(), Revision: e.revision,
		Applies: e.applies, Returned: e.network.Returned(), ApplyNanoseconds: e.applyNanoseconds,
	}
	for id, r := range e.program.Relations {
		if !r.Derived {
			rows := e.tables[id].Len()
			s.Relations = append(s.Relations, RelationStats{Name: r.Name, Rows: rows})
			s.Facts += rows
		}
	}
	for _, f := range e.families {
		view := ViewStats{Name: f.view.Name, WatchedKeys: f.watched}
		for i := range f.parts {
			view.Rows += e.network.Result(f.parts[i].goal).Len()
		}
		s.Views = append(s.Views, view)
		s.WatchedKeys += f.watched
	}
	return s
}

// now returns the clock's time.
func (e *Engine) now() int64 {
	if e.clock == nil {
		return 0
	}
	return e.clock()
}

// spend adds the time since start to what commits have cost.
func (e *Engine) spend(start int64) { e.applyNanoseconds += e.now() - start }
