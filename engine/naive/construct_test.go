package naive

import (
	"errors"
	"fmt"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/value"
)

// The tests of this file make programs by hand, so that they hold whatever the
// parser understands.

func variable(v int) analysis.Term { return analysis.Term{Var: v} }

func number(i int64) analysis.Term { return analysis.ConstTerm(value.OfInt(i)) }

func atom(r analysis.RelationID, terms ...analysis.Term) analysis.Atom {
	return analysis.Atom{Relation: r, Terms: terms}
}

func ints(arity int) []analysis.Column {
	out := make([]analysis.Column, arity)
	for i := range out {
		out[i].Type = value.Int
	}
	return out
}

func variables(n int) []analysis.Variable {
	out := make([]analysis.Variable, n)
	for i := range out {
		out[i] = analysis.Variable{Name: fmt.Sprint("V", i), Type: value.Int}
	}
	return out
}

func set(rows ...[]any) Set {
	s := Set{}
	for _, row := range rows {
		var r []value.Value
		for _, cell := range row {
			switch cell := cell.(type) {
			case int:
				r = append(r, value.OfInt(int64(cell)))
			case nil:
				r = append(r, value.OfNull())
			}
		}
		s.Add(r)
	}
	return s
}

// divideInts is integer division: an error where the divisor is 0.
var divideInts = &builtin.Function{
	Name: "/", Params: []value.Kind{value.Int, value.Int}, Result: value.Int,
	Eval: func(args []value.Value) (value.Value, error) {
		if args[1].Int() == 0 {
			return value.Value{}, &builtin.Error{Code: builtin.DivisionByZero}
		}
		return value.OfInt(args[0].Int() / args[1].Int()), nil
	},
}

const (
	relE = analysis.RelationID(iota) // e(int, int), base
	relA                             // derived, of arity 2 here
	relB                             // derived, of arity 1
)

func program(rules ...analysis.Rule) *analysis.Program {
	return &analysis.Program{
		Relations: []analysis.Relation{
			{Name: "e", Columns: ints(2)},
			{Name: "a", Columns: ints(2), Derived: true},
			{Name: "b", Columns: ints(1), Derived: true},
		},
		Rules: rules,
	}
}

func expectRows(t *testing.T, db *Database, id analysis.RelationID, want string) {
	t.Helper()
	if got := fmt.Sprint(db.Rows(id)); got != want {
		t.Errorf("relation %d has %s, want %s", id, got, want)
	}
}

// TestNegation has `_` in a negation, and a negation of what is derived.
func TestNegation(t *testing.T) {
	// b(X) <- e(X, _), !e(_, X)
	// a(X, Y) <- e(X, Y), !b(X)
	p := program(
		analysis.Rule{Head: atom(relA, variable(0), variable(1)), Body: analysis.Body{
			Atoms:     []analysis.Atom{atom(relE, variable(0), variable(1))},
			Negations: []analysis.Atom{atom(relB, variable(0))}, Variables: variables(2),
		}},
		analysis.Rule{Head: atom(relB, variable(0)), Body: analysis.Body{
			Atoms:     []analysis.Atom{atom(relE, variable(0), variable(1))},
			Negations: []analysis.Atom{atom(relE, variable(2), variable(0))}, Variables: variables(3),
		}},
	)
	db := Derive(p, Facts{"e": set([]any{1, 2}, []any{2, 3}, []any{3, 2}, []any{4, 4})})
	expectRows(t, db, relB, "[[1]]")
	expectRows(t, db, relA, "[[2 3] [3 2] [4 4]]")
}

// TestStages divides, and joins with the quotient.
func TestStages(t *testing.T) {
	// a(X, Z) <- e(X, Y), X > Y, Q = X / Y, e(Q, Z), Q < Z
	p := program(analysis.Rule{Head: atom(relA, variable(0), variable(3)), Body: analysis.Body{
		Atoms: []analysis.Atom{
			atom(relE, variable(2), variable(3)), atom(relE, variable(0), variable(1)),
		},
		Comparisons: []analysis.Comparison{
			{Op: analysis.Lt, Left: variable(2), Right: variable(3)},
			{Op: analysis.Gt, Left: variable(0), Right: variable(1)},
		},
		Computations: []analysis.Computation{
			{Out: 2, Function: divideInts, Args: []analysis.Term{variable(0), variable(1)}},
		},
		Variables: variables(4),
	}})
	db := Derive(p, Facts{"e": set(
		[]any{6, 2}, []any{3, 9}, []any{3, 1}, // both give 3
		[]any{5, 0}, []any{7, 0}, // errors
		[]any{0, 0}, []any{-1, 0}, // are not greater, so that nothing is computed
		[]any{8, nil}, []any{nil, 8}, // null is smaller, and gives null
	)})
	expectRows(t, db, relA, "[[3 9] [6 9] [8 8]]")
	if got := db.Failures(0); got != (Failures{Body: 2}) {
		t.Errorf("%+v, want two errors of the body", got)
	}
}

// TestDoubt has errors flagged, and the negation of a relation with errors unsure.
func TestDoubt(t *testing.T) {
	// b(Q) <- e(X, Y), Q = X / Y
	// a(X, Y) <- e(X, Y), !b(X)
	p := program(
		analysis.Rule{Head: atom(relB, variable(2)), Body: analysis.Body{
			Atoms: []analysis.Atom{atom(relE, variable(0), variable(1))},
			Computations: []analysis.Computation{
				{Out: 2, Function: divideInts, Args: []analysis.Term{variable(0), variable(1)}},
			},
			Variables: variables(3),
		}},
		analysis.Rule{Head: atom(relA, variable(0), variable(1)), Body: analysis.Body{
			Atoms:     []analysis.Atom{atom(relE, variable(0), variable(1))},
			Negations: []analysis.Atom{atom(relB, variable(0))}, Variables: variables(2),
		}},
	)
	query := func(r analysis.RelationID, arity int) *analysis.Query {
		q := &analysis.Query{Body: analysis.Body{Variables: variables(arity)}}
		for i := range arity {
			q.Output = append(q.Output, variable(i))
		}
		q.Body.Atoms = []analysis.Atom{atom(r, q.Output...)}
		return q
	}
	facts := Facts{"e": set([]any{4, 2}, []any{2, 2}, []any{1, 0})}
	for _, want := range []map[analysis.RelationID]Doubt{
		{relE: Sure, relB: Flagged, relA: Unsure}, {relE: Sure, relB: Sure, relA: Sure},
	} {
		db := Derive(p, facts)
		for id, doubt := range want {
			if _, got := db.Ask(query(id, len(p.Relations[id].Columns)), nil); got != doubt {
				t.Errorf("relation %d: doubt %d, want %d", id, got, doubt)
			}
		}
		// The statement deletes what b has.
		s := analysis.Statement{
			Query: query(relA, 2),
			Heads: []analysis.WriteHead{
				{Relation: "e", Terms: []analysis.Term{variable(1), number(7)}},
				{Relation: "e", Terms: []analysis.Term{variable(0), variable(1)}, Delete: true},
			},
		}
		after, outcomes, err := Transact(p, facts, []analysis.Statement{s}, nil)
		if errors.Is(err, ErrUnsure) != (want[relA] == Unsure) || errors.Is(err, ErrErrors) {
			t.Errorf("the transaction says %v", err)
		}
		if want[relA] == Sure {
			got := fmt.Sprint(after["e"].Rows(), outcomes)
			if got != "[[2 2] [2 7]] [{1 1 1}]" {
				t.Errorf("the transaction gives %s", got)
			}
		}
		facts["e"].Remove([]value.Value{value.OfInt(1), value.OfInt(0)})
	}
}

// TestAggregates groups e(K, V) by K, with every kind of aggregate.
func TestAggregates(t *testing.T) {
	const most = 1<<63 - 1
	facts := Facts{"e": set(
		[]any{1, 5}, []any{1, 3}, []any{1, 4}, []any{1, nil},
		[]any{2, nil},
		[]any{3, most}, []any{3, 1}, []any{3, -2}, []any{3, -1},
		[]any{4, most}, []any{4, 1},
	)}
	tests := []struct {
		aggregate analysis.Aggregate
		want      string
		failures  int
	}{
		{analysis.Aggregate{Kind: analysis.Count}, "[[1 3] [2 0] [3 4] [4 2]]", 0},
		{analysis.Aggregate{Kind: analysis.CountDistinct}, "[[1 3] [2 0] [3 4] [4 2]]", 0},
		{analysis.Aggregate{Kind: analysis.Sum}, "[[1 12] [2 null] [3 9223372036854775805]]", 1},
		{
			analysis.Aggregate{Kind: analysis.Avg},
			"[[1 4.0] [2 null] [3 2.305843009213694e+18] [4 4.611686018427388e+18]]", 0,
		},
		{analysis.Aggregate{Kind: analysis.Min}, "[[1 3] [2 null] [3 -2] [4 1]]", 0},
		{
			analysis.Aggregate{Kind: analysis.Max},
			"[[1 5] [2 null] [3 9223372036854775807] [4 9223372036854775807]]", 0,
		},
		{
			analysis.Aggregate{Kind: analysis.TopK, K: 2},
			"[[1 3] [1 4] [3 -2] [3 -1] [4 1] [4 9223372036854775807]]", 0,
		},
		{
			analysis.Aggregate{
				Kind: analysis.TopKThreshold, K: 2, Threshold: value.OfInt(1), Descending: true,
			},
			"[[1 4] [1 5] [3 1] [3 9223372036854775807] [4 1] [4 9223372036854775807]]", 0,
		},
		{
			analysis.Aggregate{Kind: analysis.WithinRadius, Threshold: value.OfInt(4)},
			"[[1 3] [1 4] [3 -2] [3 -1] [3 1] [4 1]]", 0,
		},
	}
	for _, test := range tests {
		test.aggregate.Arg = variable(1)
		p := program(analysis.Rule{
			Head:       atom(relA, variable(0), variable(1)),
			Aggregates: []analysis.Aggregate{{}, test.aggregate},
			Body: analysis.Body{
				Atoms: []analysis.Atom{atom(relE, variable(0), variable(1))}, Variables: variables(2),
			},
		})
		db := Derive(p, facts)
		expectRows(t, db, relA, test.want)
		if got := db.Failures(0).Head; got != test.failures {
			t.Errorf("aggregate %d: %d groups fail, want %d", test.aggregate.Kind, got, test.failures)
		}
	}
}

// TestWindow takes rows by an order, and gives them sorted by value.
func TestWindow(t *testing.T) {
	q := &analysis.Query{
		Body: analysis.Body{
			Atoms: []analysis.Atom{atom(relE, variable(0), variable(1))}, Variables: variables(2),
		},
		Output: []analysis.Term{variable(0), variable(1)},
		Order:  []analysis.Order{{Column: 1, Descending: true}}, Limit: 2, Offset: 1,
	}
	db := Derive(program(), Facts{"e": set([]any{1, 5}, []any{2, 9}, []any{4, 5}, []any{3, 5})})
	if got := fmt.Sprint(Answer(db, q, nil)); got != "[[1 5] [3 5]]" {
		t.Errorf("got %s", got)
	}
}
