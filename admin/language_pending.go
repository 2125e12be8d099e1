package admin

import (
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
)

func parseTransaction(_ *analysis.Program, text string) ([]Op, error) {
	if _, err := parse.Transaction(text); err != nil {
		return nil, err
	}
	return nil, newProblem(501, "pending", "not here yet")
}

func parseQuery(_ *analysis.Program, text string) (*analysis.Query, error) {
	if _, err := parse.Query(text); err != nil {
		return nil, err
	}
	return &analysis.Query{}, nil
}
