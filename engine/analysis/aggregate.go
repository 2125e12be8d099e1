package analysis

import (
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// aggregateKinds are the aggregates by the names that the parser knows.
var aggregateKinds = map[string]AggregateKind{
	"count": Count, "count_distinct": CountDistinct, "sum": Sum, "avg": Avg, "min": Min, "max": Max,
	"top_k": TopK, "top_k_threshold": TopKThreshold, "within_radius": WithinRadius,
}

// argument returns the place of the aggregated expression among the arguments.
func argument(c *parse.Call) int { return len(c.Args) - 1 }

// resolveAggregate makes the slots of an aggregate's argument and returns the
// aggregate over them.
func (a *analyser) resolveAggregate(c *clause, t parse.Term) parse.Term {
	flat := *t.Call
	flat.Args = append([]parse.Term(nil), t.Call.Args...)
	arg := &flat.Args[argument(&flat)]
	switch s := c.slotOf(*arg); {
	case arg.Kind == parse.Parameter && s == nil:
		a.unknownParameter(c, *arg)
	case arg.Kind == parse.Variable && s == nil:
		a.fail(arg.Pos, c.unboundHint(arg.Name), "the body does not bind %s", arg.Name)
	}
	*arg = a.flatten(c, *arg, len(c.conditions))
	t.Call = &flat
	if k := flat.Args[0]; flat.Name == "top_k" || flat.Name == "top_k_threshold" {
		if k.Value.Kind() != value.Int || k.Value.Int() < 1 || k.Value.Int() > parse.WindowMax {
			a.fail(k.Pos, "", "%s keeps a number of values from 1 to %d", flat.Name,
				parse.WindowMax)
		}
	}
	return t
}

// checkAggregates fails for aggregates that cannot share their head.
func (a *analyser) checkAggregates(c *clause) {
	var first *parse.Term
	for i := range c.head.Terms {
		t := &c.head.Terms[i]
		if t.Kind != parse.Aggregated {
			continue
		}
		if first == nil {
			first = t
			continue
		}
		for _, one := range [2]*parse.Term{first, t} {
			if aggregateKinds[one.Call.Name] >= TopK {
				a.fail(one.Pos, "give it a rule of its own",
					"%s gives several rows and stands alone in its head", one.Call.Name)
				return
			}
		}
	}
}

// aggregateKind returns the type of an aggregate as far as it is known.
func (c *clause) aggregateKind(t parse.Term) value.Kind {
	switch aggregateKinds[t.Call.Name] {
	case Count, CountDistinct:
		return value.Int
	case Avg:
		return value.Float
	}
	return c.kindOf(t.Call.Args[argument(t.Call)])
}

// checkAggregateTypes fails for arguments that cannot be aggregated so.
func (a *analyser) checkAggregateTypes(c *clause) {
	for _, t := range c.head.Terms {
		if t.Kind != parse.Aggregated {
			continue
		}
		arg := t.Call.Args[argument(t.Call)]
		kind := c.kindOf(arg)
		switch aggregate := aggregateKinds[t.Call.Name]; {
		case kind == value.Invalid:
		case (aggregate == Sum || aggregate == Avg) && kind != value.Int && kind != value.Float:
			a.fail(arg.Pos, "", "%s adds numbers, and %s is %s%s", t.Call.Name, c.show(arg),
				kindText(kind), c.slotOf(arg).because())
		case aggregate == TopKThreshold || aggregate == WithinRadius:
			limit := t.Call.Args[argument(t.Call)-1]
			if coerce(limit.Value, kind).Kind() != kind {
				a.fail(limit.Pos, literalHint(limit.Value, kind), "%s is %s%s, and %s is %s",
					c.show(arg), kindText(kind), c.slotOf(arg).because(), limit,
					kindText(limit.Value.Kind()))
			}
		}
	}
}

// aggregates makes the IR of a head's aggregates, nil if it has none.
func (e *emitter) aggregates(head *parse.Atom) []Aggregate {
	var aggregates []Aggregate
	for i, t := range head.Terms {
		if t.Kind != parse.Aggregated {
			continue
		}
		if aggregates == nil {
			aggregates = make([]Aggregate, len(head.Terms))
		}
		args := t.Call.Args
		kind := aggregateKinds[t.Call.Name]
		agg := Aggregate{Kind: kind, Arg: e.term(args[len(args)-1]), Descending: t.Call.Descending}
		if kind == TopK || kind == TopKThreshold {
			agg.K = args[0].Value.Int()
		}
		if kind == TopKThreshold || kind == WithinRadius {
			agg.Threshold = coerce(args[len(args)-2].Value, e.c.aggregateKind(t))
		}
		aggregates[i] = agg
	}
	return aggregates
}
