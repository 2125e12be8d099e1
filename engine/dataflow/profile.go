package dataflow

// planMeter counts the runs of a plan while a profile is taken.
type planMeter struct {
	runs, nanos uint64
	clock       func() int64
	plain       []step // the steps without meters; nil while nothing is counted
	first       int    // of plain
	insiders    []int
}

// stepCount counts how often a plan goes on behind a step.
type stepCount struct{ passed uint64 }

// Profile begins or ends to count what the plans of the network do, from zero. While it
// counts, each step of a plan is followed by one that counts; otherwise counting
// costs nothing. The clock gives nanoseconds; it may be nil.
func (n *Network) Profile(on bool, clock func() int64) {
	for _, p := range n.predicates {
		for _, pl := range p.readers {
			pl.unmeasured()
			if on {
				pl.measured(clock)
			}
			if pl.other != nil {
				pl.other.unmeasured()
				if on {
					pl.other.measured(clock)
				}
			}
		}
	}
}

// measured puts meters between the steps of a plan.
func (pl *plan) measured(clock func() int64) {
	pl.meter = planMeter{clock: clock, plain: pl.steps, first: pl.first, insiders: pl.insiders}
	steps := make([]step, 0, 2*len(pl.steps)+1)
	steps = append(steps, step{kind: stepTimer})
	for _, s := range pl.steps {
		steps = append(steps, s, step{kind: stepMeter, meter: new(stepCount)})
	}
	pl.steps, pl.first = steps, 2*pl.first+1
	pl.insiders = nil
	for _, i := range pl.meter.insiders {
		pl.insiders = append(pl.insiders, 2*i+1)
	}
}

func (pl *plan) unmeasured() {
	if m := &pl.meter; m.plain != nil {
		pl.steps, pl.first, pl.insiders = m.plain, m.first, m.insiders
	}
	pl.meter = planMeter{}
}

// time runs the rest of the running plan and adds up how long that takes.
func (n *Network) time() {
	pl := n.plan
	m := &pl.meter
	m.runs++
	if m.clock == nil {
		n.run(1)
		return
	}
	start := m.clock()
	n.run(1)
	m.nanos += uint64(m.clock() - start)
}
