package engine

import (
	"encoding/binary"
	"errors"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/value"
)

// compiledMax is how many queries stay compiled.
const compiledMax = 256

// compiledQueries keeps the networks of queries that read only base relations, for the
// next query that differs from them in nothing but names and constants. They belong
// to the program that is deployed.
type compiledQueries struct {
	byShape map[string]*compiled
	clock   uint64 // of uses
	// functions have numbers, which stand for them in a shape.
	functions map[*builtin.Function]uint64

	// Of the query that was looked up last.
	shape  []byte
	values []value.Value // its parameters and then its constants
}

// compiled is a query whose constants became parameters.
type compiled struct {
	network *dataflow.Network // nil of a query that cannot be kept
	// constants are those of definitions, with the ids that the network knows them by.
	constants []constantID
	used      uint64
}

type constantID struct {
	value value.Value
	id    value.ID
}

// isValid reports whether the constants still have their ids, which nobody retains for
// the compiled query.
func (k *compiled) isValid(symbols *value.Interner) bool {
	for _, c := range k.constants {
		if id, ok := symbols.Lookup(c.value); !ok || id != c.id {
			return false
		}
	}
	return true
}

// find returns the compiled network of a query, whose parameters are then values, or
// nil if it has none.
func (c *compiledQueries) find(e *Engine, q *analysis.Query, parameters []value.Value) *compiled {
	c.values = append(c.values[:0], parameters...)
	c.describe(q)
	c.clock++
	known, ok := c.byShape[string(c.shape)]
	if !ok || !known.isValid(e.symbols) {
		known = c.compile(e, q)
	}
	if known == nil {
		return nil
	}
	if known.used = c.clock; known.network == nil {
		return nil
	}
	return known
}

// describe makes the shape of a query, and appends its constants to values.
func (c *compiledQueries) describe(q *analysis.Query) {
	b := &q.Body
	s := c.shape[:0]
	for _, n := range [...]int{
		len(q.Parameters), len(b.Variables), len(b.Atoms), len(b.Negations),
		len(b.Comparisons), len(b.Computations),
	} {
		s = binary.AppendUvarint(s, uint64(n))
	}
	for _, a := range b.Atoms {
		s = c.terms(binary.AppendUvarint(s, uint64(a.Relation)), a.Terms)
	}
	for _, a := range b.Negations {
		s = c.terms(binary.AppendUvarint(s, uint64(a.Relation)), a.Terms)
	}
	for i := range b.Comparisons {
		cmp := &b.Comparisons[i]
		s = c.term(c.term(append(s, byte(cmp.Op)), cmp.Left), cmp.Right)
	}
	for _, f := range b.Computations {
		s = binary.AppendUvarint(s, c.number(f.Function))
		s = binary.AppendUvarint(s, uint64(f.Out))
		s = c.terms(binary.AppendUvarint(s, uint64(len(f.Args))), f.Args)
	}
	c.shape = c.terms(s, q.Output)
}

// number returns the number of a function.
func (c *compiledQueries) number(f *builtin.Function) uint64 {
	n, ok := c.functions[f]
	if !ok {
		if c.functions == nil {
			c.functions = make(map[*builtin.Function]uint64)
		}
		n = uint64(len(c.functions))
		c.functions[f] = n
	}
	return n
}

func (c *compiledQueries) terms(s []byte, terms []analysis.Term) []byte {
	for _, t := range terms {
		s = c.term(s, t)
	}
	return s
}

func (c *compiledQueries) term(s []byte, t analysis.Term) []byte {
	if t.IsConst() {
		c.values = append(c.values, t.Const)
		return append(s, 0)
	}
	return binary.AppendUvarint(s, uint64(t.Var)+1)
}

// compile compiles the query that was described, and keeps it if it can be used again.
// It returns nil if that cannot be told yet.
func (c *compiledQueries) compile(e *Engine, q *analysis.Query) *compiled {
	symbols := &knownSymbols{Interner: e.symbols}
	network, err := dataflow.New(dataflow.Config{
		Program: e.prepared, Symbols: symbols, Tables: e.tables,
		Goals: []*analysis.Query{lifted(q)}, Transient: true,
	})
	if err != nil {
		return nil
	}
	known := &compiled{used: c.clock}
	if network.IsDirect() {
		known.network, known.constants = network, symbols.constants
	}
	if c.byShape == nil {
		c.byShape = make(map[string]*compiled)
	}
	if len(c.byShape) >= compiledMax {
		c.dropOldest()
	}
	c.byShape[string(c.shape)] = known
	return known
}

func (c *compiledQueries) dropOldest() {
	oldest := ""
	var least *compiled
	for shape, known := range c.byShape {
		if least == nil || known.used < least.used {
			oldest, least = shape, known
		}
	}
	delete(c.byShape, oldest)
}

// drop forgets the query that was looked up last.
func (c *compiledQueries) drop() { delete(c.byShape, string(c.shape)) }

// forget forgets all queries.
func (c *compiledQueries) forget() {
	clear(c.byShape)
	clear(c.functions)
}

// lifted returns a query with its constants as parameters behind its own, each
// occurrence one of its own, in the order in which describe meets them.
func lifted(q *analysis.Query) *analysis.Query {
	l := lifting{parameters: len(q.Parameters)}
	var c compiledQueries
	c.describe(q)
	l.constants = c.values
	out := &analysis.Query{Columns: q.Columns}
	out.Parameters = append(out.Parameters, q.Parameters...)
	b := &out.Body
	b.Variables = append(b.Variables, q.Body.Variables[:l.parameters]...)
	for _, v := range l.constants {
		out.Parameters = append(out.Parameters, analysis.Column{Type: v.Kind()})
		b.Variables = append(b.Variables, analysis.Variable{Type: v.Kind(), Nullable: v.IsNull()})
	}
	b.Variables = append(b.Variables, q.Body.Variables[l.parameters:]...)
	b.Atoms, b.Negations = l.atoms(q.Body.Atoms), l.atoms(q.Body.Negations)
	for _, cmp := range q.Body.Comparisons {
		left := l.term(cmp.Left)
		b.Comparisons = append(b.Comparisons,
			analysis.Comparison{Op: cmp.Op, Left: left, Right: l.term(cmp.Right)})
	}
	for _, f := range q.Body.Computations {
		f.Out = l.variable(f.Out)
		f.Args = l.terms(f.Args)
		b.Computations = append(b.Computations, f)
	}
	out.Output = l.terms(q.Output)
	return out
}

// lifting replaces the constants of a query.
type lifting struct {
	parameters int
	constants  []value.Value
	met        int
}

func (l *lifting) atoms(atoms []analysis.Atom) []analysis.Atom {
	out := make([]analysis.Atom, len(atoms))
	for i, a := range atoms {
		out[i] = analysis.Atom{Relation: a.Relation, Terms: l.terms(a.Terms)}
	}
	return out
}

func (l *lifting) terms(terms []analysis.Term) []analysis.Term {
	out := make([]analysis.Term, len(terms))
	for i, t := range terms {
		out[i] = l.term(t)
	}
	return out
}

func (l *lifting) term(t analysis.Term) analysis.Term {
	if t.IsConst() {
		l.met++
		return analysis.Term{Var: l.parameters + l.met - 1}
	}
	return analysis.Term{Var: l.variable(t.Var)}
}

func (l *lifting) variable(v int) int {
	if v >= l.parameters {
		v += len(l.constants)
	}
	return v
}

// errUnknown says that the graph does not hold a constant of a definition, which so
// has no id that a compiled query could keep.
var errUnknown = errors.New("a constant that the graph does not hold")

// knownSymbols gives the constants of definitions the ids that they have.
type knownSymbols struct {
	*value.Interner
	constants []constantID
}

// ID returns the id of a constant.
func (s *knownSymbols) ID(v value.Value) (value.ID, error) {
	id, ok := s.Lookup(v)
	if !ok {
		return 0, errUnknown
	}
	s.constants = append(s.constants, constantID{v, id})
	return id, nil
}
