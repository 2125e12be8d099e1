// Package parse reads the text of the rule language into syntax trees with
// positions, and words its errors so that a person can mend the text: line and
// column, what was expected, and the remedy. It resolves no names and knows no
// types beyond literals; package analysis does, and reports in the same form.
// It does no I/O and keeps no state.
package parse

import "fmt"

// Limits of a text. What exceeds one is an error, never cut off.
const (
	SourceBytesMax = 1 << 20   // of a program, transaction or query
	StatementsMax  = 10_000    // of a program or transaction
	ColumnsMax     = 32        // of a relation, and parameters of a view
	AtomsMax       = 32        // of a body
	ComparisonsMax = 64        // of a body
	CallsMax       = 64        // functions and operators of a statement
	NestingMax     = 32        // of parentheses and calls in an expression
	WindowMax      = 1_000_000 // of limit and offset
	PartsMax       = 16        // of a view
	HeadsMax       = 32        // of a statement that writes, but for plain facts
	WritesMax      = 64        // statements of an action
	TuplesMax      = 100_000   // of a bulk statement
	NameBytesMax   = 64        // of a relation, view, column, variable or parameter
	errorsMax      = 20        // reported of one text
)

// Program parses the text of a whole program: schemas, rules, views, actions, seed
// facts and a clock. The error is of type Errors; the File is nil then. The result aliases
// src.
func Program(src string) (*File, error) {
	p, err := newParser(src)
	if err != nil {
		return nil, err
	}
	f := &File{Source: src}
	p.eachStatement(func() { p.programStatement(f) })
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return f, nil
}

// Transaction parses facts to insert (`+edge(1, 2)`, `+edge[(1, 2), (2, 3)]`)
// and to delete (the same with `-`), also for each match of a body (`-edge(X, Y) <-
// edge(X, Y), Y > 5`). The error is of type Errors. The result
// aliases src.
func Transaction(src string) (*TransactionTree, error) {
	p, err := newParser(src)
	if err != nil {
		return nil, err
	}
	t := &TransactionTree{Source: src}
	p.eachStatement(func() { p.transactionStatement(t) })
	if len(p.errs) == 0 && len(t.Statements) == 0 {
		p.fail(p.peek(), "for instance: +edge(1, 2)", "the transaction is empty")
	}
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return t, nil
}

// Query parses one query, which begins with `?`. The error is of type Errors.
// The result aliases src.
func Query(src string) (*QueryTree, error) {
	p, err := newParser(src)
	if err != nil {
		return nil, err
	}
	var q *QueryTree
	p.eachStatement(func() {
		if q != nil {
			p.fail(p.peek(), "a line that continues the query begins with white space",
				"a query is one statement, and here begins another")
			return
		}
		q = new(QueryTree)
		*q = p.query()
		p.expectEnd()
		q.Source = src
	})
	if len(p.errs) == 0 && q == nil {
		p.fail(p.peek(), "for instance: ?edge(1, X)", "the query is empty")
	}
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return q, nil
}

func tooLarge(src string) Errors {
	return Errors{{
		Position: Position{Line: 1, Column: 1},
		Message: fmt.Sprintf("the text has %d bytes, more than the %d allowed",
			len(src), SourceBytesMax),
		Hint: "send facts in several transactions, or load them from a file",
	}}
}
