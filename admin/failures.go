package admin

import (
	"encoding/json"
	"net/http"

	"github.com/heddle-live/heddle/engine"
)

// ErrorList is what a graph's rules cannot compute at a revision.
type ErrorList struct {
	Revision uint64       `json:"revision" doc:"What the list knows"`
	Errors   []RuleErrors `json:"errors" doc:"In the order of the program"`
}

// RuleErrors are the rows for which a rule, or the condition of a view or query,
// cannot be computed.
type RuleErrors struct {
	Rule   string         `json:"rule,omitempty" doc:"The rule's text"`
	View   string         `json:"view,omitempty" doc:"Or the view"`
	Line   int            `json:"line,omitempty" doc:"Its line in the program"`
	Column int            `json:"column,omitempty" doc:"Its column in that line"`
	Count  int            `json:"count" doc:"Number of rows, of those that somebody needs"`
	Rows   []RowErrorInfo `json:"rows" doc:"The first of them, at most 20"`
}

// RowErrorInfo is a row for which a rule cannot be computed.
type RowErrorInfo struct {
	Code     string            `json:"code" doc:"What failed" example:"division_by_zero"`
	Message  string            `json:"message" doc:"The same with the values"`
	Bindings map[string]string `json:"bindings" doc:"Variables of the rule, as a program spells values"`
}

// NewErrorList returns the engine's list as clients see it.
func NewErrorList(revision uint64, list []engine.RuleErrors) ErrorList {
	out := ErrorList{Revision: revision, Errors: []RuleErrors{}}
	for _, e := range list {
		out.Errors = append(out.Errors, ruleErrorsOf(e))
	}
	return out
}

func ruleErrorsOf(e engine.RuleErrors) RuleErrors {
	out := RuleErrors{
		Rule: e.Rule, View: e.View, Line: e.Pos.Line, Column: e.Pos.Column, Count: e.Count,
		Rows: []RowErrorInfo{},
	}
	for _, s := range e.Samples {
		row := RowErrorInfo{Code: s.Code, Message: s.Message, Bindings: map[string]string{}}
		for i, name := range s.Variables {
			row.Bindings[name] = s.Values[i].String()
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// appendErrors appends a list of one clause's errors as JSON.
func appendErrors(dst []byte, e engine.RuleErrors) []byte {
	text, err := json.Marshal([]RuleErrors{ruleErrorsOf(e)})
	if err != nil {
		panic("admin: row errors are no JSON")
	}
	return append(dst, text...)
}

func (a *API) listErrors(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	list, err := a.service.Errors(r.Context(), graph)
	if err != nil {
		return graphError(graph, err)
	}
	return writeJSON(w, http.StatusOK, list)
}

// rowErrorsProblem says what could not be computed, and for which rows.
func rowErrorsProblem(err error, rows *engine.RowErrors) *Problem {
	p := newProblem(http.StatusUnprocessableEntity, "row_errors", "%s", err).
		withHint("guard the computation by a condition, such as B != 0 before A / B, " +
			"or correct the facts")
	details := make([]Detail, len(rows.Errors.Samples))
	for i, s := range rows.Errors.Samples {
		details[i] = Detail{Message: s.Message, Rule: rows.Errors.Rule}
		for c, name := range s.Variables {
			separator := ", "
			if c == 0 {
				separator = " for "
			}
			details[i].Message += separator + name + " = " + s.Values[c].String()
		}
	}
	return p.withErrors(details, rows.Errors.Count)
}
