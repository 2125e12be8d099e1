package oracle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// pinned is a query on a pinned revision, answered some steps later.
type pinned struct {
	text       string
	pin        *engine.Pin
	evaluation *engine.Evaluation
	wait       int // steps
	want       [][]value.Value
	doubt      naive.Doubt
}

// analysed returns a step's query and its parameters in the query's order.
func (r *run) analysed(s *step) (*analysis.Query, []value.Value, error) {
	text := s.query.String()
	tree, err := parse.Query(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w\n%s", errInvalid, err, text)
	}
	q, err := analysis.AnalyseQuery(r.program, tree)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w\n%s", errInvalid, err, text)
	}
	values := make([]value.Value, len(q.Parameters))
	for i, p := range q.Parameters {
		at := slices.IndexFunc(s.params, func(x param) bool { return x.name == p.Name })
		if at < 0 || s.params[at].kind != p.Type {
			return nil, nil, fmt.Errorf("%w: parameter %v\n%s", errInvalid, p, text)
		}
		values[i] = s.values[at]
	}
	return q, values, nil
}

func (r *run) query(s *step) error {
	q, values, err := r.analysed(s)
	if err != nil {
		return err
	}
	got, err := r.engine.Query(q, values, engine.QueryOptions{})
	want, doubt := r.derived().InOrder(q, values)
	return r.judge(s.query.String(), got, err, want, doubt)
}

// judge compares the answer of a query with what the twin says of its revision.
func (r *run) judge(text string, got engine.QueryResult, err error, want [][]value.Value,
	doubt naive.Doubt,
) error {
	switch {
	case err != nil && (doubt > naive.Sure || r.overBudget(err)):
		return nil
	case err != nil:
		return fmt.Errorf("query %s: %w", text, err)
	case got.Errors != nil && doubt == naive.Sure:
		return fmt.Errorf("query %s has errors %+v", text, got.Errors)
	case !slices.Equal(got.Rows, slices.Concat(want...)):
		return fmt.Errorf("query %s gives %v, want %v", text, got.Rows, want)
	}
	return nil
}

// pin begins to answer a query on the present revision.
func (r *run) pin(s *step) error {
	q, values, err := r.analysed(s)
	if err != nil {
		return err
	}
	pin, err := r.engine.Pin(0)
	if errors.Is(err, engine.ErrPins) {
		return nil
	}
	if err != nil {
		return err
	}
	p := &pinned{text: s.query.String(), pin: pin, wait: s.index}
	if p.evaluation, err = pin.Query(q, values, engine.QueryOptions{}); err != nil {
		return err
	}
	p.want, p.doubt = r.derived().InOrder(q, values)
	r.pins = append(r.pins, p)
	return nil
}

// tendPins lets each query on a pin work a little, and ends those that have waited
// long enough; at the end, all.
func (r *run) tendPins(all bool) error {
	kept := r.pins[:0]
	for _, p := range r.pins {
		if p.wait--; p.wait > 0 && !all {
			if p.wait%2 == 0 {
				p.evaluation.Step(0)
			}
			kept = append(kept, p)
			continue
		}
		for !p.evaluation.Step(0) {
		}
		got, err := p.evaluation.Result()
		if err := r.judge("on a pin "+p.text, got, err, p.want, p.doubt); err != nil {
			return err
		}
		p.pin.Close()
	}
	r.pins = kept
	r.engine.SweepPins(1000)
	return nil
}
