package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/journal"
)

// recoverOps is how many facts are handed to the engine at a time.
const recoverOps = 4096

// Open begins the graph's next opening of the log, rebuilds the engine from the
// facts and the program that the log holds, and tells the publisher. Damage is
// a *journal.DamageError; nothing is served then.
func Open(ctx context.Context, cfg Config) (*Loop, error) {
	l := &Loop{
		cfg:      cfg,
		engine:   engine.New(cfg.Nanos),
		queue:    make(chan item, cfg.QueueTransactions),
		stopped:  make(chan struct{}),
		receipts: map[receiptKey]int{},
	}
	l.program.Store(&program{checked: &analysis.Program{}, relations: map[string]uint32{}})
	position, err := cfg.Journal.Open(ctx, cfg.Graph, cfg.Now())
	if err != nil {
		return nil, fmt.Errorf("open the log of graph %s: %w", cfg.Graph, err)
	}
	l.position, l.epoch = position, position.Epoch.String()
	l.revision.Store(position.Revision)
	if err := l.recover(ctx); err != nil {
		return nil, fmt.Errorf("recover graph %s at revision %d: %w",
			cfg.Graph, position.Revision, err)
	}
	l.engine.SetLimits(cfg.Limits)
	l.turn.NowMilli = cfg.Now().UnixMilli()
	l.lookAtDisk()
	cfg.Publisher.Deployed(l.lend(ctx), nil)
	return l, nil
}

func (l *Loop) recover(ctx context.Context) error {
	text, revision, err := l.cfg.Journal.Program(ctx, l.cfg.Graph)
	if err != nil {
		return err
	}
	if text == nil {
		return nil
	}
	p, err := parseProgram(text)
	if err != nil {
		return fmt.Errorf("program of revision %d: %w", revision, err)
	}
	p.revision = revision
	if _, err := l.engine.Deploy(p.checked, false); err != nil {
		return fmt.Errorf("program of revision %d: %w", revision, err)
	}
	if err := l.load(ctx, p); err != nil {
		return err
	}
	l.program.Store(p)
	return nil
}

func parseProgram(text []byte) (*program, error) {
	var r programRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if r.Format != programFormat && r.Format != programFormatOrdered {
		return nil, fmt.Errorf("format %d is unknown; this version reads formats %d and %d",
			r.Format, programFormat, programFormatOrdered)
	}
	file, err := parse.Program(r.Source)
	if err != nil {
		return nil, err
	}
	checked, err := analysis.AnalyseStored(file, r.Source)
	if err != nil {
		return nil, err
	}
	if r.Relations == nil {
		r.Relations = map[string]uint32{}
	}
	return &program{
		checked: checked, schema: r.Schema, relations: r.Relations, next: r.Next, orders: r.Orders,
	}, nil
}

// load hands the log's facts to the engine.
func (l *Loop) load(ctx context.Context, p *program) error {
	relations, err := p.storedRelations()
	if err != nil {
		return err
	}
	ops := make([]analysis.Op, 0, recoverOps)
	var cells []value.Value
	flush := func() error {
		if err := l.engine.Check(ops); err != nil {
			return errors.Join(journal.ErrCorrupt, err)
		}
		_, _, err := l.engine.Apply(l.position.Revision, ops)
		ops, cells = ops[:0], make([]value.Value, 0, cap(cells))
		return err
	}
	_, err = l.cfg.Journal.State(ctx, l.cfg.Graph, func(m journal.Mutation) error {
		r, ok := relations[m.Relation]
		if !ok {
			return fmt.Errorf("%w: facts of relation number %d, which the program does not have",
				journal.ErrCorrupt, m.Relation)
		}
		from := len(cells)
		var err error
		if cells, err = journal.ParseTuple(cells, m.Tuple); err != nil {
			return fmt.Errorf("fact of %s: %w", r.name, err)
		}
		var op analysis.Op
		cells, op = r.row(cells, from)
		ops = append(ops, op)
		if len(ops) == recoverOps {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}
