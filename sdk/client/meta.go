package client

import (
	"context"
	"fmt"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/sdk/frame"
)

// Meta asks what a view is like: the parameters that make its keys, and the
// columns of its rows. A refusal is a *ClosedError. It waits for a session until
// ctx ends.
func (c *Client) Meta(ctx context.Context, graph, view string) (*frame.Meta, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })()
	broadcast, err := protocol.ParsePath(graph + "/" + view)
	if err != nil {
		return nil, fmt.Errorf("meta of %s/%s: %w", graph, view, err)
	}
	if err := checkName("path", string(broadcast)); err != nil {
		return nil, err
	}
	l, err := c.current(ctx)
	if err != nil {
		return nil, fmt.Errorf("meta of %s: %w", broadcast, err)
	}
	sub, err := l.session.Subscribe(ctx, broadcast, frame.TrackMeta, lite.SubscribeOptions{})
	if err != nil {
		return nil, fmt.Errorf("meta of %s: %w", broadcast, err)
	}
	defer sub.Close()
	next, err := sub.Next(ctx)
	if closed := closedBy(err); closed != nil {
		return nil, closed
	}
	if err != nil {
		return nil, fmt.Errorf("meta of %s: %w", broadcast, err)
	}
	return frame.ParseMeta(next.Payload)
}

// metaCall is one reading of a view's track meta that all its keys share.
type metaCall struct {
	done chan struct{}
	meta *frame.Meta // nil if the server does not tell; set before done is closed
}

// wait returns the meta; the error is the cause of ctx.
func (m *metaCall) wait(ctx context.Context) (*frame.Meta, error) {
	select {
	case <-m.done:
		return m.meta, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// meta returns the reading of broadcast's meta on this session, beginning it if
// necessary.
func (l *link) meta(c *Client, broadcast protocol.Path) *metaCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.metas[broadcast]
	if m == nil {
		m = &metaCall{done: make(chan struct{})}
		l.metas[broadcast] = m
		c.tasks.Go(func() {
			m.meta = readMeta(c.ctx, l.session, broadcast)
			close(m.done)
		})
	}
	return m
}

// forgetMeta has the next subscription read broadcast's meta anew, unless that
// was begun already after m.
func (l *link) forgetMeta(broadcast protocol.Path, m *metaCall) {
	l.mu.Lock()
	if l.metas[broadcast] == m {
		delete(l.metas, broadcast)
	}
	l.mu.Unlock()
}

// readMeta reads the one frame of a track meta. A server without one is no
// fault: cells are then untyped.
func readMeta(ctx context.Context, s *lite.Session, broadcast protocol.Path) *frame.Meta {
	ctx, cancel := context.WithTimeout(ctx, firstFrameTimeout)
	defer cancel()
	sub, err := s.Subscribe(ctx, broadcast, frame.TrackMeta, lite.SubscribeOptions{})
	if err != nil {
		return nil
	}
	defer sub.Close()
	next, err := sub.Next(ctx)
	if err != nil {
		return nil
	}
	meta, err := frame.ParseMeta(next.Payload)
	if err != nil {
		return nil
	}
	return meta
}
