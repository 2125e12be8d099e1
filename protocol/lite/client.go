package lite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

// open opens a request stream once SETUP is out.
func (s *Session) open(ctx context.Context) (protocol.Stream, error) {
	select {
	case <-s.setupSent:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.transport.Context().Done():
		return nil, context.Cause(s.transport.Context())
	}
	return s.transport.OpenStream(ctx)
}

// ask opens a request stream, sends head, and has answer read what comes. The
// end of ctx ends the request. After success our half is finished; after an
// error both halves are reset.
func (s *Session) ask(ctx context.Context, head []byte, answer func(*request) error) error {
	stream, err := s.open(ctx)
	if err != nil {
		return err
	}
	q := s.newRequest(stream)
	stop := context.AfterFunc(ctx, func() { q.refuse(protocol.CodeCancel) })
	defer stop()
	if _, err = stream.Write(head); err == nil {
		err = answer(q)
	}
	if err == nil {
		return stream.Close()
	}
	q.refuse(codeOf(err))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Info asks for a track's properties. A refusal is a *protocol.StreamError.
func (s *Session) Info(
	ctx context.Context, broadcast protocol.Path, track string,
) (moq.Info, error) {
	head := varint.Append(nil, wire.StreamTrack)
	head = wire.AppendTrack(head, wire.Track{Broadcast: broadcast, Name: track})
	var info moq.Info
	err := s.ask(ctx, head, func(q *request) error {
		if err := q.next(); err != nil {
			return noEOF(err)
		}
		m, err := wire.ParseTrackInfo(q.msg)
		if err != nil {
			return err
		}
		info = moq.Info{
			Priority:   m.Priority,
			MaxLatency: time.Duration(min(m.MaxLatencyMS, maxLatencyMS)) * time.Millisecond,
			Timescale:  m.TimescaleUnit,
		}
		return awaitFIN(q.r)
	})
	if err != nil {
		return moq.Info{}, fmt.Errorf("info of %q %q: %w", broadcast, track, err)
	}
	return info, nil
}

// maxLatencyMS keeps a peer's figure within a time.Duration: about a century.
const maxLatencyMS = 100 * 365 * 24 * 3600 * 1000

// Fetch asks for one group, whole. The payloads are the caller's. A refusal is
// a *protocol.StreamError.
func (s *Session) Fetch(
	ctx context.Context, broadcast protocol.Path, track string, sequence uint64,
) ([]moq.Frame, error) {
	head := varint.Append(nil, wire.StreamFetch)
	head = wire.AppendFetch(head, wire.Fetch{Broadcast: broadcast, Track: track, Group: sequence})
	var frames []moq.Frame
	err := s.ask(ctx, head, func(q *request) error {
		var timestamp int64
		for total := 0; ; {
			delta, payload, err := wire.ReadFrame(q.r, s.config.Limits.FrameBytes)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			// One group is at most what one frame may be: a peer must not make
			// us hold more.
			if total += wire.MaxFrameHeaderBytes + len(payload); total > moq.MaxGroupBytes {
				return fmt.Errorf("group of %d bytes: %w", total, wire.ErrBounds)
			}
			timestamp += delta
			frames = append(frames, moq.Frame{Timestamp: timestamp, Payload: payload})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("fetch of %q %q %d: %w", broadcast, track, sequence, err)
	}
	return frames, nil
}

// Listing is an open listing of what the peer announces below a prefix.
type Listing struct {
	q     *request
	hop   protocol.HopID
	first []Announcement
	begun bool
	stop  func() bool
}

// Announced opens a listing and waits for its initial set. The end of ctx ends
// the listing, also later.
func (s *Session) Announced(ctx context.Context, prefix protocol.Path) (*Listing, error) {
	head := varint.Append(nil, wire.StreamAnnounce)
	head = wire.AppendAnnounceRequest(head, wire.AnnounceRequest{
		Prefix: prefix, ExcludeHop: s.config.HopID,
	})
	stream, err := s.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("announcements of %q: %w", prefix, err)
	}
	q := s.newRequest(stream)
	l := &Listing{q: q}
	l.stop = context.AfterFunc(ctx, func() { q.refuse(protocol.CodeCancel) })
	if _, err = stream.Write(head); err == nil {
		err = l.begin()
	}
	if err != nil {
		l.stop()
		q.refuse(codeOf(err))
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("announcements of %q: %w", prefix, err)
	}
	return l, nil
}

func (l *Listing) begin() error {
	if err := l.q.next(); err != nil {
		return noEOF(err)
	}
	ok, err := wire.ParseAnnounceOK(l.q.msg)
	if err != nil {
		return err
	}
	l.hop = ok.HopID
	for range ok.Active {
		a, err := l.read()
		if err != nil {
			return noEOF(err)
		}
		// A peer may announce without end, but not as one initial set.
		if len(l.first) == maxInitialAnnouncements {
			return fmt.Errorf("initial set of %d: %w", ok.Active, wire.ErrBounds)
		}
		l.first = append(l.first, a)
	}
	return nil
}

const maxInitialAnnouncements = 1 << 20

func (l *Listing) read() (Announcement, error) {
	if err := l.q.next(); err != nil {
		return Announcement{}, err
	}
	m, err := wire.ParseAnnounce(l.q.msg)
	return Announcement{Suffix: m.Suffix, Active: m.Active, Hops: m.Hops}, err
}

// HopID returns the peer's hop: the implicit last one of every announcement.
func (l *Listing) HopID() protocol.HopID { return l.hop }

// Next returns the initial set, maybe empty, on the first call, and then waits
// for changes. It returns io.EOF when the peer has ended the listing, another
// error when the listing failed. For one goroutine.
func (l *Listing) Next() ([]Announcement, error) {
	if !l.begun {
		l.begun = true
		return l.first, nil
	}
	a, err := l.read()
	if err != nil {
		return nil, err
	}
	return []Announcement{a}, nil
}

// Close ends the listing. It may be called while Next waits.
func (l *Listing) Close() {
	l.stop()
	_ = l.q.stream.Close() // fails only if the stream is gone already
	l.q.stream.Stop(protocol.CodeCancel)
}
