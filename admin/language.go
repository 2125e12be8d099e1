package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
)

// parseTransaction reads statements from program text and checks them.
func parseTransaction(program *analysis.Program, text string) ([]analysis.Statement, error) {
	tree, err := parse.Transaction(text)
	if err != nil {
		return nil, err
	}
	return analysis.CheckTransaction(program, tree)
}

// parseQuery reads a query from text and checks it.
func parseQuery(program *analysis.Program, text string) (*analysis.Query, error) {
	tree, err := parse.Query(text)
	if err != nil {
		return nil, err
	}
	return analysis.AnalyseQuery(program, tree)
}

// languageProblem turns the errors of the rule language into an answer that
// lists each with its place; it returns nil for other errors.
func languageProblem(err error) *Problem {
	list, ok := errors.AsType[parse.Errors](err)
	if !ok {
		single, ok := errors.AsType[*parse.Error](err)
		if !ok {
			return nil
		}
		list = parse.Errors{single}
	}
	details := make([]Detail, len(list))
	for i, e := range list {
		details[i] = Detail{
			Message: e.Message, Line: e.Line, Column: e.Column, Hint: e.Hint, Text: e.Detail(),
		}
	}
	p := newProblem(http.StatusBadRequest, "program_invalid", "%s", list[0].Error())
	if len(list) > 1 {
		p.Detail = fmt.Sprintf("%d errors in the text", len(list))
	}
	return p.withErrors(details, len(details))
}
