package lite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

var errNoOrigin = &protocol.StreamError{Code: protocol.CodeNotFound, Reason: "nothing is served"}

// request is one request stream, the peer's or ours, while it lasts.
type request struct {
	session *Session
	stream  protocol.Stream
	r       *bufio.Reader
	msg     []byte // the current message's body
}

func (s *Session) newRequest(stream protocol.Stream) *request {
	return &request{session: s, stream: stream, r: bufio.NewReaderSize(stream, readBufferBytes)}
}

// next reads one message.
func (q *request) next() error {
	var err error
	q.msg, err = q.session.readMessage(q.r, q.msg)
	return err
}

// done gives the current message up: streams may last long after it.
func (q *request) done() { q.msg = nil }

// refuse ends both halves at once.
func (q *request) refuse(code protocol.StreamCode) {
	q.stream.Reset(code)
	q.stream.Stop(code)
}

// serveRequest reads what the peer wants on a stream it opened, and does it.
// Whatever is wrong with it ends this stream only.
func (s *Session) serveRequest(stream protocol.Stream) {
	s.counters.RequestsTotal.Add(1)
	s.counters.RequestsOpen.Add(1)
	defer s.counters.RequestsOpen.Add(-1)
	q := s.newRequest(stream)
	kind, err := s.serve(q)
	if err == nil {
		return
	}
	if s.transport.Context().Err() != nil {
		return // whatever ended the session is nothing to report of each stream
	}
	code := codeOf(err)
	if code == protocol.CodeInternal {
		s.log.Error("request failed", "type", kind, "error", err)
	} else {
		s.log.Debug("request refused", "type", kind, "code", uint64(code), "error", err)
	}
	s.counters.RequestsRefused.Add(1)
	q.refuse(code)
}

// serve does one request. An error means that the stream is to be reset.
func (s *Session) serve(q *request) (kind uint64, err error) {
	// From here on the peer has so long to say all of what it wants.
	s.expect(q)
	kind, err = varint.Read(q.r)
	if err != nil {
		return kind, err
	}
	serve := s.server(kind)
	if serve == nil {
		return kind, &protocol.StreamError{
			Code: protocol.CodeUnexpectedStream, Reason: fmt.Sprintf("stream type %#x", kind),
		}
	}
	if kind != wire.StreamProbe { // a Probe stream may say nothing at all
		if err := q.next(); err != nil {
			return kind, noEOF(err)
		}
	}
	if err := q.stream.SetReadDeadline(time.Time{}); err != nil {
		return kind, err
	}
	return kind, serve(q)
}

func (s *Session) server(kind uint64) func(*request) error {
	switch kind {
	case wire.StreamAnnounce:
		return s.serveAnnounce
	case wire.StreamSubscribe:
		return s.serveSubscribe
	case wire.StreamFetch:
		return s.serveFetch
	case wire.StreamProbe:
		return s.serveProbe
	case wire.StreamGoaway:
		return s.serveGoaway
	case wire.StreamTrack:
		return s.serveTrack
	}
	return nil
}

// expect bounds the wait for the peer's next bytes.
func (s *Session) expect(q *request) {
	_ = q.stream.SetReadDeadline(time.Now().Add(s.config.Limits.RequestTimeout))
}

// finish ends our half and waits for the end of the peer's: a half that is not
// read to its FIN never gives its stream credit back.
func (s *Session) finish(q *request) error {
	if err := q.stream.Close(); err != nil {
		return err
	}
	s.expect(q)
	if err := awaitFIN(q.r); err != nil {
		q.stream.Stop(codeOf(err)) // the answer is out; only the rest is refused
	}
	return nil
}

func (s *Session) serveTrack(q *request) error {
	m, err := wire.ParseTrack(q.msg)
	if err != nil {
		return err
	}
	if s.config.Origin == nil {
		return errNoOrigin
	}
	info, err := s.config.Origin.Info(s.transport.Context(), m.Broadcast, m.Name)
	if err != nil {
		return fmt.Errorf("info of %q %q: %w", m.Broadcast, m.Name, err)
	}
	q.stream.SetPriority(urgencyControl)
	answer := wire.AppendTrackInfo(nil, wire.TrackInfo{
		Priority:      info.Priority,
		MaxLatencyMS:  uint64(max(0, info.MaxLatency.Milliseconds())),
		TimescaleUnit: max(1, info.Timescale),
	})
	if _, err := q.stream.Write(answer); err != nil {
		return err
	}
	return s.finish(q)
}

// serveFetch answers with the frames that the newest group has now. Older
// groups are gone; one that does not exist yet is refused at once, but a track
// that has just come to life gets the time to begin its first.
func (s *Session) serveFetch(q *request) error {
	m, err := wire.ParseFetch(q.msg)
	if err != nil {
		return err
	}
	if s.config.Origin == nil {
		return errNoOrigin
	}
	q.done()
	ctx, cancel := context.WithTimeout(s.transport.Context(), s.config.Limits.RequestTimeout)
	defer cancel()
	select {
	case s.fetches <- struct{}{}:
		defer func() { <-s.fetches }()
	case <-q.stream.Done():
		return &protocol.StreamError{Code: protocol.CodeCancel, Remote: true}
	case <-ctx.Done():
		return &protocol.StreamError{Code: protocol.CodeBusy, Reason: "too many fetches"}
	}
	track, release, err := s.config.Origin.Subscribe(ctx, m.Broadcast, m.Track)
	if err != nil {
		return fmt.Errorf("fetch of %q %q: %w", m.Broadcast, m.Track, err)
	}
	defer release()
	wake := make(chan struct{}, 1)
	cursor := track.NewCursor(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	defer cursor.Close()
	defer cursor.Release()
	for {
		buf, step := cursor.Take(nil)
		switch step.Kind {
		case moq.NewGroup:
			if step.Sequence != m.Group {
				return otherGroup(m.Group, step.Sequence)
			}
			if step.Shared != nil {
				buf = step.Shared
			}
			if err := s.pace.wait(ctx, groupCost(track)-1); err != nil {
				return err
			}
			if err := s.writeGroup(q.stream, buf, cursor.Evicted); err != nil {
				return err
			}
			return s.finish(q)
		case moq.Aborted:
			return &protocol.StreamError{Code: step.Code, Reason: "track aborted"}
		case moq.Finished:
			return &protocol.StreamError{Code: protocol.CodeNotFound, Reason: "track has ended"}
		}
		select {
		case <-wake:
		case <-q.stream.Done():
			return &protocol.StreamError{Code: protocol.CodeCancel, Remote: true}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fetchChunkBytes of an answer must be taken within RequestTimeout.
const fetchChunkBytes = 16 << 10

// writeGroup writes b as long as the peer goes on taking it: it may be memory
// that only this peer still holds. evicted asks for it back.
func (s *Session) writeGroup(stream protocol.SendStream, b []byte, evicted func() bool) error {
	patience := s.config.Limits.RequestTimeout
	t := time.AfterFunc(patience, func() { stream.Reset(protocol.CodeTimeout) })
	defer t.Stop()
	for chunk := range slices.Chunk(b, fetchChunkBytes) {
		if evicted() {
			return &protocol.StreamError{Code: protocol.CodeOld, Reason: "group is gone"}
		}
		t.Reset(patience)
		if _, err := stream.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// otherGroup refuses a FETCH of a group that is not the newest.
func otherGroup(wanted, newest uint64) error {
	if wanted < newest {
		return &protocol.StreamError{Code: protocol.CodeOld, Reason: "group is gone"}
	}
	return &protocol.StreamError{Code: protocol.CodeNotFound, Reason: "no such group yet"}
}

// serveAnnounce lists what the origin announces, until either side has enough.
func (s *Session) serveAnnounce(q *request) error {
	m, err := wire.ParseAnnounceRequest(q.msg)
	if err != nil {
		return err
	}
	q.done()
	var list Announcements = &silence{}
	if s.config.Origin != nil {
		list = s.config.Origin.Announcements(m.Prefix)
	}
	defer list.Close()
	ctx, cancel := context.WithCancelCause(s.transport.Context())
	defer cancel(nil)
	s.spawn(func() { cancel(peerLeft(awaitFIN(q.r))) })
	q.stream.SetPriority(urgencyControl)
	var buf []byte
	for first := true; ; first = false {
		news, err := list.Next(ctx)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if errors.Is(err, errPeerLeft) {
			return q.stream.Close()
		}
		if err != nil {
			return fmt.Errorf("announcements of %q: %w", m.Prefix, err)
		}
		news = slices.DeleteFunc(slices.Clone(news), func(a Announcement) bool {
			return first && !a.Active || len(a.Hops) > wire.MaxHops ||
				m.ExcludeHop != 0 && slices.Contains(a.Hops, m.ExcludeHop)
		})
		buf = buf[:0]
		if first {
			buf = wire.AppendAnnounceOK(buf, wire.AnnounceOK{
				HopID: s.config.HopID, Active: uint64(len(news)),
			})
		}
		for _, a := range news {
			buf = wire.AppendAnnounce(buf, wire.Announce{
				Active: a.Active, Suffix: a.Suffix, Hops: a.Hops,
			})
		}
		if _, err := q.stream.Write(buf); err != nil {
			return err
		}
	}
}

var errPeerLeft = errors.New("peer ended its half")

// peerLeft is the reason to end a stream whose other half gave err.
func peerLeft(err error) error {
	if err == nil {
		return errPeerLeft
	}
	return err
}

// silence announces nothing, for ever.
type silence struct{ begun bool }

func (l *silence) Next(ctx context.Context) ([]Announcement, error) {
	if !l.begun {
		l.begun = true
		return nil, nil
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (l *silence) Close() {}

// serveProbe declines: we advertise no probing, and some clients take a reset
// of this stream for the end of the session, so it is finished instead.
func (s *Session) serveProbe(q *request) error {
	if err := q.stream.Close(); err != nil {
		return err
	}
	q.stream.Stop(protocol.CodeUnsupported)
	return nil
}

func (s *Session) serveGoaway(q *request) error {
	m, err := wire.ParseGoaway(q.msg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	again := s.wentAway
	s.wentAway = true
	s.mu.Unlock()
	if again || m.URI != "" && !s.config.Client {
		s.Close(protocol.SessionProtocolViolation, "GOAWAY twice, or with a client's URI")
		return nil
	}
	close(s.goingAway)
	return s.finish(q)
}
