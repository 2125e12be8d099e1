package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
)

// Problem is an error answer, the body of every response with a status of 400
// and above (application/problem+json).
//
// Source: RFC 9457; code, errors, error_count and request are our extensions.
type Problem struct {
	Title  string   `json:"title" doc:"The status in words" example:"Bad Request"`
	Status int      `json:"status" doc:"The HTTP status" example:"400"`
	Code   string   `json:"code" doc:"Stable name, for programs" example:"rows_invalid"`
	Detail string   `json:"detail" doc:"What is wrong, for people"`
	Hint   string   `json:"hint,omitempty" doc:"What to do about it"`
	Errors []Detail `json:"errors,omitempty" doc:"The places that are wrong, at most 20"`
	// ErrorCount is the number of all errors; larger than len(Errors) if some were left out.
	ErrorCount int    `json:"error_count,omitempty" doc:"Number of all errors, listed or not"`
	Request    string `json:"request,omitempty" doc:"For status 500: what to look for in the log"`

	retryAfter int    // seconds for Retry-After, 0 for none
	challenge  string // WWW-Authenticate
	cause      error  // of a 500: logged, never sent
}

// Detail is one place that is wrong. Lines and columns count from 1 in the text
// that was sent, rows count from 1 in their list; zero and "" mean "not known".
type Detail struct {
	Message    string `json:"message" doc:"What is wrong here"`
	Location   string `json:"location,omitempty" doc:"Member or header" example:"insert.edge[2]"`
	Line       int    `json:"line,omitempty" doc:"Line in the text sent, from 1"`
	Column     int    `json:"column,omitempty" doc:"Column in that line, in characters, from 1"`
	Text       string `json:"text,omitempty" doc:"The same, with the line and a caret"`
	Hint       string `json:"hint,omitempty" doc:"What to write instead"`
	Relation   string `json:"relation,omitempty" doc:"The relation of a bad row"`
	Row        int    `json:"row,omitempty" doc:"The row's place in its list, from 1"`
	ColumnName string `json:"column_name,omitempty" doc:"The relation's column"`
	Expected   string `json:"expected,omitempty" doc:"What belongs there"`
	Got        string `json:"got,omitempty" doc:"What was there, shortened"`
	Rule       string `json:"rule,omitempty" doc:"The rule or view concerned"`
	Part       string `json:"part,omitempty" doc:"The failing part of the server (readiness)"`
}

// errorsMax is the most Details that a Problem lists; all are counted.
const errorsMax = 20

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// Text returns the problem for a terminal: the detail, the hint, then each place;
// one in a program with its source line and a caret.
func (p *Problem) Text() string {
	var b strings.Builder
	places, hint := p.Errors, p.Hint
	if len(places) == 1 && strings.Contains(p.Detail, places[0].Message) {
		// The detail tells the only place already.
		b.WriteString(cmp.Or(places[0].Text, p.Detail))
		if places[0].Text == "" {
			hint = cmp.Or(hint, places[0].Hint)
		}
		places = nil
	} else {
		b.WriteString(p.Detail)
	}
	if hint != "" {
		b.WriteString("\n  hint: " + hint)
	}
	for _, d := range places {
		b.WriteString("\n  " + d.text())
	}
	if more := p.ErrorCount - len(p.Errors); more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	if p.Request != "" {
		b.WriteString("\n  the server's log has it under request " + p.Request)
	}
	return b.String()
}

// text returns the place and its message on a line, then the hint.
func (d Detail) text() string {
	if d.Text != "" {
		return strings.ReplaceAll(d.Text, "\n", "\n  ")
	}
	place := ""
	switch {
	case d.Line > 0 && d.Column > 0:
		place = fmt.Sprintf("line %d, column %d: ", d.Line, d.Column)
	case d.Line > 0:
		place = fmt.Sprintf("line %d: ", d.Line)
	case d.Location != "":
		place = d.Location + ": "
	case d.Part != "":
		place = d.Part + ": "
	}
	if d.Hint == "" {
		return place + d.Message
	}
	return place + d.Message + "\n    hint: " + d.Hint
}

func newProblem(status int, code, format string, args ...any) *Problem {
	return &Problem{
		Title:  http.StatusText(status),
		Status: status,
		Code:   code,
		Detail: fmt.Sprintf(format, args...),
	}
}

func (p *Problem) withHint(format string, args ...any) *Problem {
	p.Hint = fmt.Sprintf(format, args...)
	return p
}

// withErrors lists the first errorsMax of details and counts total.
func (p *Problem) withErrors(details []Detail, total int) *Problem {
	p.Errors = details[:min(len(details), errorsMax)]
	p.ErrorCount = max(total, len(details))
	return p
}

// sentinels is the one table from a Service's errors to statuses. Order
// matters only for an error that wraps several.
var sentinels = []struct {
	err        error
	status     int
	code       string
	hint       string
	retryAfter int
}{
	{ErrExists, 409, "exists", "", 0},
	{
		ErrPrecondition, 409, "precondition_failed",
		"read again, decide again, and send the revision of what you read", 0,
	},
	{ErrProgramChanged, 409, "program_changed", "send the request again", 0},
	{
		ErrIdempotencyMismatch, 422, "idempotency_mismatch",
		"use a new key for a new request; the same key only to repeat one", 0,
	},
	{
		ErrTooExpensive, 422, "query_too_expensive",
		"bind more arguments, or declare a view and watch it", 0,
	},
	{ErrTooLarge, 413, "too_large", "split the transaction, or keep large values elsewhere", 0},
	{
		ErrUnknownOutcome, 503, "outcome_unknown",
		"repeat it with the same Idempotency-Key: it is done once, whatever happened", 2,
	},
	{ErrBusy, 429, "busy", "send it again later, with the same Idempotency-Key", 1},
	{ErrClosing, 503, "closing", "send it again when the server is back", 2},
	{ErrDeadline, 504, "deadline", "", 0},
	{context.DeadlineExceeded, 504, "deadline", "", 0},
	{context.Canceled, 503, "cancelled", "", 0},
	{
		engine.ErrBudget, 422, "query_too_expensive",
		"bind more arguments, or declare a view and watch it", 0,
	},
	{engine.ErrCancelled, 504, "deadline", "", 0},
	{engine.ErrStaleQuery, 409, "program_changed", "send the request again", 0},
	{ErrReadOnly, 507, "read_only", "free disk space on the server; reads and views go on", 0},
	{ErrFull, 507, "full", "", 0},
	{engine.ErrFull, 507, "full", "", 0},
	{ErrNotFound, 404, "not_found", "", 0},
}

// problemOf turns any error into the answer for it. An error that nobody gave a
// meaning becomes a 500 that keeps the cause for the log.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if p := languageProblem(err); p != nil {
		return p
	}
	if loss, ok := errors.AsType[*engine.DataLossError](err); ok {
		return lossProblem(loss)
	}
	if row, ok := errors.AsType[*analysis.RowError](err); ok {
		detail := Detail{Message: row.Message, Relation: row.Relation, ColumnName: row.Column}
		return newProblem(http.StatusBadRequest, "rows_invalid", "%s", row).
			withErrors([]Detail{detail}, 1)
	}
	if budget, ok := errors.AsType[*engine.BudgetError](err); ok {
		return budgetProblem(err, budget)
	}
	if rows, ok := errors.AsType[*engine.RowErrors](err); ok {
		return rowErrorsProblem(err, rows)
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			p := newProblem(s.status, s.code, "%s", err)
			p.Hint, p.retryAfter = s.hint, s.retryAfter
			return p
		}
	}
	p := newProblem(http.StatusInternalServerError, "internal",
		"something went wrong inside the server; the request may or may not have had an effect")
	p.cause = err
	return p
}

// lossProblem says which facts an apply would lose and how to allow it.
func lossProblem(loss *engine.DataLossError) *Problem {
	p := newProblem(http.StatusConflict, "data_loss", "%s; nothing was applied", loss).
		withHint("keep the relation in the program, delete its rows first, " +
			"or allow the loss with --yes (?allow_loss)")
	detail := Detail{Message: loss.Error(), Relation: loss.Relation}
	return p.withErrors([]Detail{detail}, 1)
}

// budgetProblem says which limit was passed, and by which rule.
func budgetProblem(err error, budget *engine.BudgetError) *Problem {
	p := newProblem(http.StatusUnprocessableEntity, "query_too_expensive", "%s", err).
		withHint("bind more arguments, or declare a view and watch it")
	switch budget.Kind {
	case engine.LimitCommitRows:
		p.Code = "commit_rows"
		p.Hint = "nothing was done; write less at once, or raise commit_rows in the server's " +
			"configuration"
	case engine.LimitGraphRows:
		p.Code = "graph_rows"
		p.Hint = "nothing was done; watch fewer keys, or raise graph_rows in the server's " +
			"configuration"
	case engine.LimitCommitBytes:
		p.Code = "commit_bytes"
		p.Hint = "nothing was done; compute shorter texts or fewer values at once, or raise " +
			"commit_bytes in the server's configuration"
	case engine.LimitGraphBytes:
		p.Code = "graph_bytes"
		p.Hint = "nothing was done; watch fewer keys, or raise graph_bytes in the server's " +
			"configuration"
	}
	if budget.Rule+budget.View == "" {
		return p
	}
	detail := Detail{Message: budget.Unwrap().Error(), Rule: cmp.Or(budget.Rule, budget.View)}
	return p.withErrors([]Detail{detail}, 1)
}

// programChanged reports whether a request must be decoded again.
func programChanged(err error) bool {
	return errors.Is(err, ErrProgramChanged) || errors.Is(err, engine.ErrStaleQuery)
}

// write sends p. A body that cannot be sent is the client's loss only.
func (p *Problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic("admin: a problem that cannot be encoded")
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}
