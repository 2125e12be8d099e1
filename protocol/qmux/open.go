package qmux

import (
	"context"
	"errors"

	"github.com/heddle-live/heddle/protocol"
)

var errWriteAfterClose = errors.New("write on a closed stream")

// AcceptStream implements protocol.Session.
func (s *session) AcceptStream(ctx context.Context) (protocol.Stream, error) {
	st, err := s.accept(ctx, bidi)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// AcceptUniStream implements protocol.Session.
func (s *session) AcceptUniStream(ctx context.Context) (protocol.ReceiveStream, error) {
	st, err := s.accept(ctx, uni)
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (s *session) accept(ctx context.Context, dir int) (*stream, error) {
	for {
		s.mu.Lock()
		if s.err != nil {
			s.mu.Unlock()
			return nil, s.err
		}
		if in := &s.incoming[dir]; len(in.queue) > 0 {
			st := in.queue[0]
			in.queue[0] = nil
			in.queue = in.queue[1:]
			st.accepted = true
			s.settleLocked(st) // it may have been reset meanwhile
			s.mu.Unlock()
			return st, nil
		}
		if s.acceptWake[dir] == nil {
			s.acceptWake[dir] = make(chan struct{})
		}
		wake := s.acceptWake[dir]
		s.mu.Unlock()
		if err := s.wait(ctx, wake); err != nil {
			return nil, err
		}
	}
}

// wait waits for wake, ctx or the session's end.
func (s *session) wait(ctx context.Context, wake <-chan struct{}) error {
	select {
	case <-wake:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// OpenStream implements protocol.Session.
func (s *session) OpenStream(ctx context.Context) (protocol.Stream, error) {
	st, err := s.open(ctx, bidi)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// OpenUniStream implements protocol.Session.
func (s *session) OpenUniStream(ctx context.Context) (protocol.SendStream, error) {
	st, err := s.open(ctx, uni)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// TryOpenUniStream implements protocol.Session. Before the peer's parameters
// have arrived there is no credit.
func (s *session) TryOpenUniStream() (protocol.SendStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if st := s.tryOpenLocked(uni); st != nil {
		return st, nil
	}
	return nil, protocol.ErrStreamLimit
}

func (s *session) open(ctx context.Context, dir int) (*stream, error) {
	for {
		s.mu.Lock()
		if s.err != nil {
			s.mu.Unlock()
			return nil, s.err
		}
		if st := s.tryOpenLocked(dir); st != nil {
			s.mu.Unlock()
			return st, nil
		}
		if s.openWake == nil {
			s.openWake = make(chan struct{})
		}
		wake := s.openWake
		s.mu.Unlock()
		if err := s.wait(ctx, wake); err != nil {
			return nil, err
		}
	}
}

// tryOpenLocked opens a stream, or returns nil if the peer grants none now.
func (s *session) tryOpenLocked(dir int) *stream {
	if s.opened[dir] >= s.openMax[dir] {
		return nil
	}
	id := s.opened[dir]<<2 | uint64(dir)<<1
	if s.isServer {
		id |= 1
	}
	s.opened[dir]++
	return s.newStreamLocked(id)
}
