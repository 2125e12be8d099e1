package client

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/heddle-live/heddle/sdk/frame"
)

// Update is one step of a watch. Its slices are never modified and may be kept;
// the caller must not modify them either.
type Update struct {
	Revision uint64 // the commit at which Rows are exact
	Epoch    string // the opening of the graph's log that Revision belongs to
	Rows     []frame.Row
	Entered  []frame.Row // since the last update taken; of the first, all rows
	Left     []frame.Row // since the last update taken
	// Skipped says that results between the last update and this one were not
	// seen: a row that came and went between them is in neither list.
	Skipped bool
	// Stale says why Rows are only the last good ones; nil if they are exact.
	Stale *frame.Stale
	// Parts are the results of the view's named parts, all at Revision; nil if it has
	// none. Rows, Entered, Left and Stale say nothing of such a view.
	Parts []Part
	// Meta is what the server says of the view, with the columns of Rows, which a
	// new program may change. It is nil if the server does not tell.
	Meta *frame.Meta
}

// Part returns the part called name, and an empty one if there is none.
func (u *Update) Part(name string) Part {
	for i := range u.Parts {
		if u.Parts[i].Name == name {
			return u.Parts[i]
		}
	}
	return Part{}
}

// Part is the result of one named part of a view, as Update is of a plain one. A part
// that is gone is told once, with the rows that Left.
type Part struct {
	Name    string
	Rows    []frame.Row
	Entered []frame.Row
	Left    []frame.Row
	Stale   *frame.Stale
}

// Watch is one watch of one key. All methods are safe for concurrent use, the
// iterator of Updates for one loop at a time.
type Watch struct {
	feed *feed
	news chan struct{} // has room for one: there may be something to take
	done chan struct{} // closed by end

	mu   sync.Mutex
	err  error       // why it ended
	stop func() bool // releases the hold on the context

	// What the loop over Updates has taken.
	taken uint64
	rows  []frame.Row
	parts []Part
}

// Updates yields the result of the key, at first as soon as there is one, then
// whenever it has changed. A slow loop sees fewer, larger updates, never a wrong
// one. It ends with an error: a *ClosedError if the server ended the watch, the
// cause of the watch's context, or ErrClosed after Client.Close; after
// Watch.Close it just ends. A loop that was left goes on with a further call.
func (w *Watch) Updates() iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		for {
			u, err := w.next()
			if err != nil {
				if err != errWatchClosed {
					yield(Update{}, err)
				}
				return
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}

func (w *Watch) next() (Update, error) {
	for {
		ended := w.cause()
		if ended == errWatchClosed {
			return Update{}, ended
		}
		// What arrived before another end is still told.
		if u, ok := w.take(); ok {
			return u, nil
		}
		if ended != nil {
			return Update{}, ended
		}
		select {
		case <-w.news:
		case <-w.done:
		}
	}
}

func (w *Watch) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// take returns the feed's newest result as this watch sees it, once.
func (w *Watch) take() (Update, bool) {
	l := w.feed.newest()
	if l.version == w.taken {
		return Update{}, false
	}
	u := Update{
		Revision: l.revision, Epoch: l.epoch, Rows: l.rows, Stale: l.stale,
		Entered: l.entered, Left: l.left, Skipped: l.skipped, Meta: l.meta, Parts: l.parts,
	}
	if w.taken == 0 || l.version != w.taken+1 {
		u.Entered, u.Left = difference(w.rows, l.rows)
		u.Parts = partsSince(w.parts, l.parts)
		u.Skipped = w.taken != 0
	}
	w.taken, w.rows, w.parts = l.version, l.rows, l.parts
	return u, true
}

// partsSince returns parts with what entered and left since the parts before.
func partsSince(before, now []Part) []Part {
	if now == nil && before == nil {
		return nil
	}
	old := Update{Parts: before}
	since := make([]Part, 0, len(now))
	for _, p := range now {
		p.Entered, p.Left = difference(old.Part(p.Name).Rows, p.Rows)
		since = append(since, p)
	}
	there := func(name string) bool {
		return slices.ContainsFunc(now, func(p Part) bool { return p.Name == name })
	}
	for _, p := range before {
		if len(p.Rows) > 0 && !there(p.Name) {
			since = append(since, Part{Name: p.Name, Left: p.Rows})
		}
	}
	return since
}

// Current returns the newest result, with nothing entered or left, and false
// before there is one. It does not disturb Updates.
func (w *Watch) Current() (Update, bool) {
	l := w.feed.newest()
	return Update{
		Revision: l.revision, Epoch: l.epoch, Rows: l.rows, Stale: l.stale, Meta: l.meta,
		Parts: partsSince(l.parts, l.parts),
	}, l.version > 0
}

// Live reports whether the rows follow the server at present; otherwise they are
// the last ones known, or there are none yet.
func (w *Watch) Live() bool { return w.feed.newest().live }

// Waiting returns why the key is being asked for again, nil while the watch is
// live, has ended, or waits for its first answer. It must not be modified.
func (w *Watch) Waiting() *Waiting {
	if w.cause() != nil {
		return nil
	}
	return w.feed.newest().waiting
}

// Meta returns what the server says of the view, with the columns of its rows.
// It is nil before the first update and if the server does not tell; integers
// beyond ±(2^53-1) are then strings.
func (w *Watch) Meta() *frame.Meta { return w.feed.newest().meta }

// Close ends the watch. The subscription ends with its last watch.
func (w *Watch) Close() { w.end(errWatchClosed) }

// end ends the watch because of cause; only the first call counts.
func (w *Watch) end(cause error) {
	w.mu.Lock()
	if w.err != nil {
		w.mu.Unlock()
		return
	}
	w.err = cause
	stop := w.stop
	w.mu.Unlock()
	close(w.done)
	if stop != nil {
		stop()
	}
	w.feed.client.left(w.feed, w)
}

// endWith ends the watch when ctx ends.
func (w *Watch) endWith(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { w.end(context.Cause(ctx)) })
	w.mu.Lock()
	ended := w.err != nil
	w.stop = stop
	w.mu.Unlock()
	if ended {
		stop()
	}
}

func (w *Watch) notify() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// difference returns the rows that entered and left between two results.
func difference(before, after []frame.Row) (entered, left []frame.Row) {
	for len(before) > 0 && len(after) > 0 {
		switch c := frame.Compare(before[0], after[0]); {
		case c < 0:
			left = append(left, before[0])
			before = before[1:]
		case c > 0:
			entered = append(entered, after[0])
			after = after[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
	return append(entered, after...), append(left, before...)
}
