package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/sdk/frame"
)

// callAction executes an action of the program with the values in the path.
func (a *API) callAction(w http.ResponseWriter, r *http.Request) error {
	graph, name := pathValue(r, "graph"), pathValue(r, "action")
	tx, err := a.transaction(r, "call-action")
	if err != nil {
		return err
	}
	body, err := readBody(w, r, a.limits.BodyBytes, limitBody)
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(body); text != "" && text != "{}" {
		return newProblem(http.StatusBadRequest, "body_unexpected", "this route takes no body").
			withHint("the values for the action stand in the path: "+
				"POST /v1/graphs/%s/actions/%s/VALUE/VALUE", graphExample(graph), shortened(name))
	}
	if tx.IdempotencyKey != "" {
		requestHash(r).Sum(tx.RequestHash[:0])
	}
	var receipt Receipt
	for attempt := 1; ; attempt++ {
		if err = a.decodeCall(graph, name, chi.URLParam(r, "*"), &tx); err != nil {
			return err
		}
		receipt, err = a.service.Transact(r.Context(), graph, tx)
		if !programChanged(err) || attempt == programChangesMax {
			break
		}
	}
	if err != nil {
		return graphError(graph, err)
	}
	if receipt.Statements == nil { // of an action that is nothing but rows
		only := StatementReceipt{Inserted: receipt.Inserted, Deleted: receipt.Deleted}
		for i := range tx.Statements {
			only.Rows = len(tx.Statements[i].Ops)
		}
		receipt.Statements = []StatementReceipt{only}
	}
	writeReceipt(w, receipt)
	return nil
}

// decodeCall fills in tx for an action by the program that is in force now.
func (a *API) decodeCall(graph, name, key string, tx *Transaction) error {
	program, err := a.service.Schema(graph)
	if err != nil {
		return graphError(graph, err)
	}
	action := program.ActionNamed(name)
	if action == nil {
		return actionUnknown(program, name)
	}
	tx.Program, tx.Statements = program, action.Statements
	tx.Parameters, err = actionKey(action, key)
	return err
}

func actionUnknown(program *analysis.Program, name string) error {
	known := make([]string, len(program.Actions))
	for i := range program.Actions {
		known[i] = program.Actions[i].Name
	}
	if program.ViewNamed(name) != nil {
		return newProblem(http.StatusNotFound, "action_unknown",
			"%s is a view; it is watched, not called", name)
	}
	fallback := "the actions are " + strings.Join(known[:min(len(known), 10)], ", ")
	if len(known) == 0 {
		fallback = "the program declares no action yet; apply one such as " +
			"action add($x: int) := +seen($x)"
	}
	return newProblem(http.StatusNotFound, "action_unknown", "there is no action %q",
		shortened(name)).withHint("%s", didYouMean(name, known, fallback))
}

// actionKey reads a value for each of an action's parameters.
func actionKey(action *analysis.Action, key string) ([]value.Value, error) {
	var segments []string
	if key != "" {
		segments = strings.Split(key, "/")
	}
	if len(segments) != len(action.Parameters) {
		return nil, newProblem(http.StatusBadRequest, "key_invalid",
			"action %s takes %d values in the path, and there are %d",
			action.Name, len(action.Parameters), len(segments)).
			withHint("its parameters are %s", columnList(action.Parameters))
	}
	values := make([]value.Value, len(segments))
	for i, s := range segments {
		column := &action.Parameters[i]
		v, err := keyValue(s, column.Type)
		if err != nil {
			p := newProblem(http.StatusBadRequest, "key_invalid", "action %s, parameter %s: %v",
				action.Name, column.Name, err)
			p.Hint = "values are spelled as in the key of a view: 7, true, 0.5, a~20b"
			return nil, p.withErrors([]Detail{{
				Message: err.Error(), Location: fmt.Sprintf("path, value %d", i+1),
				ColumnName: column.Name, Expected: expectedOf(column.Type), Got: shortened(s),
			}}, 1)
		}
		values[i] = v
	}
	return values, nil
}

func keyValue(segment string, kind value.Kind) (value.Value, error) {
	if strings.Contains(segment, "%") {
		unescaped, err := url.PathUnescape(segment)
		if err != nil {
			return value.Value{}, err
		}
		segment = unescaped
	}
	t, _ := frame.TypeOf(kind.String())
	cell, err := frame.ParseKey(segment, t)
	if err != nil {
		return value.Value{}, err
	}
	switch c := cell.(type) {
	case int64:
		return value.OfInt(c), nil
	case float64:
		v, _ := value.OfFloat(c)
		return v, nil
	case string:
		return value.OfString(c), nil
	case bool:
		return value.OfBool(c), nil
	case frame.Bytes:
		return value.OfBytes(string(c)), nil
	case frame.Timestamp:
		return value.OfTimestamp(int64(c)), nil
	}
	panic("admin: a key of a type that no parameter has")
}
