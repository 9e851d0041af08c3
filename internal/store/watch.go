package store

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Watched returns the queues of a broker that contain watched letters, which are requeued letters
// that may still come back. It returns a queue only if the watch over at least one of its letters
// has ended by now. The queues are returned as origins.
func (s *Store) Watched(ctx context.Context, broker string, now time.Time) ([]deadletter.Origin, error) {
	ids, err := values[int64](s.read.QueryContext(ctx, `SELECT DISTINCT place FROM (SELECT
		coalesce(target, origin) AS place FROM letters INDEXED BY letters_watched
		WHERE state = 'requeued' AND due_at <= $1
		AND coalesce(target, origin) IN (SELECT id FROM origins WHERE broker = $2) ORDER BY due_at
		LIMIT 10000)`, now.UnixMilli(), broker))
	if err != nil {
		return nil, err
	}
	var origins []deadletter.Origin
	for _, id := range ids {
		if p := s.names.origin(id); p.Broker == broker {
			origins = append(origins, p.origin())
		}
	}
	return origins, nil
}

// SettleQuiet settles letters that were requeued to a queue and did not come back before their
// watch ended. It settles up to n of these letters and returns their number. It does not settle a
// letter if the queue is known to be longer now than when the letter was sent. It settles the
// letters as unverified if dlo could not see whether the queue is consumed, or if the queue has no
// dead-letter exchange.
func (s *Store) SettleQuiet(
	ctx context.Context, o deadletter.Origin, now time.Time, n int, facts deadletter.QueueFacts,
) (int, error) {
	end := watchEnd{deadletter.Quiet, deadletter.ResultQuiet, "quiet: it did not come back"}
	switch {
	case !facts.Exists || facts.Consumers < 0 || facts.Ready < 0:
		end.result = deadletter.ResultUnverified
		end.detail += "; unverified, because dlo could not see whether the queue is being consumed"
	case facts.DeadLetters == deadletter.DeadLettersNowhere:
		end.result = deadletter.ResultUnverified
		end.detail += "; unverified, because the queue has no dead-letter exchange now, " +
			"so the letter is lost if it failed again"
	}
	done := 0
	err := s.tx(ctx, classify, func(t *tx) error {
		origin, err := t.originID(o)
		if err != nil {
			return err
		}
		records, err := t.records(`SELECT `+recordColumns+` FROM letters l INDEXED BY letters_watched
			WHERE l.state = 'requeued' AND coalesce(l.target, l.origin) = $1 AND l.due_at <= $2
			AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.letter = l.id AND a.n = l.tries AND a.depth < $3)
			LIMIT $4`, origin, now.UnixMilli(), facts.Ready, n)
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := t.endWatch(r, end); err != nil {
				return err
			}
		}
		done = len(records)
		return nil
	})
	return done, err
}

// EndWatch ends the watch over up to n letters that were in a queue before u.Since, if their watch
// is due to end. It is called when dlo can no longer see what happens to these letters in the
// queue. The parameter u determines whether the letters are held or settled as unverified. Groups
// count held letters as letters that need people. The function "channels" returns the channels of a
// rule. EndWatch returns the number of letters whose watch it ended.
func (s *Store) EndWatch(
	ctx context.Context, o deadletter.Origin, now time.Time, n int, u deadletter.Unseen,
	channels func(rule string) []string,
) (int, error) {
	done := 0
	err := s.tx(ctx, classify, func(t *tx) error {
		origin, err := t.originID(o)
		if err != nil {
			return err
		}
		records, err := t.records(`SELECT `+recordColumns+` FROM letters l INDEXED BY letters_watched
			WHERE l.state = 'requeued' AND coalesce(l.target, l.origin) = $1 AND l.due_at <= $2
			AND l.changed_at <= $3 LIMIT $4`, origin, now.UnixMilli(), u.Since.UnixMilli(), n)
		if err != nil {
			return err
		}
		groups := map[int64][]deadletter.GroupDeath{}
		for _, r := range records {
			end := watchEnd{
				deadletter.LostSight, deadletter.ResultUnverified,
				u.Why + "; requeue it only if a second arrival does no harm",
			}
			if u.Settles || u.SettlesRedirected && r.target.Valid {
				end.trigger, end.detail = deadletter.Quiet, "quiet: it did not come back; unverified: "+u.Why
			} else if r.group > 0 {
				groups[r.group] = append(groups[r.group], deadletter.GroupDeath{
					At:       time.UnixMilli(t.now),
					Severity: deadletter.Severity(r.severity),
					Channels: channels(r.rule),
				})
			}
			if err := t.endWatch(r, end); err != nil {
				return err
			}
		}
		for group, deaths := range groups {
			if err := t.recordDeaths(group, deaths); err != nil {
				return err
			}
		}
		done = len(records)
		return nil
	})
	return done, err
}

// watchEnd describes how the watch over a letter ends.
type watchEnd struct {
	trigger deadletter.Trigger
	result  deadletter.Result // result of the letter in the operation that sent it
	detail  string
}

// endWatch ends the watch over a letter.
func (t *tx) endWatch(r *record, end watchEnd) error {
	to, _ := r.state.On(end.trigger)
	t.changeRecord(r, func() { r.state = to })
	unverified, why, heldFrom, reason := 0, "", "", ""
	switch {
	case to == deadletter.StateHeld:
		why, heldFrom, reason = end.detail, string(deadletter.StateScheduled), end.detail
	case end.result == deadletter.ResultUnverified:
		unverified = 1
	}
	if _, err := t.exec(`UPDATE letters SET state = $2, due_at = NULL,
		unverified = max(unverified, $3), changed_at = $4, why = CASE WHEN $5 = '' THEN why ELSE $5 END, held_from = $6
		WHERE id = $1`,
		r.id, to, unverified, t.now, why, heldFrom); err != nil {
		return err
	}
	if err := t.addEvent(r.id, 0, string(to), deadletter.Service.Name, end.detail); err != nil {
		return err
	}
	return t.unwatch(r, end.result, reason)
}

// watchChunk is the number of letters whose watch is extended in one transaction. A queue without
// consumers may contain very many letters. With a larger number, ingest would have to wait too
// long.
const watchChunk = 1000

// WatchOn extends the watch over letters that were requeued to a queue, if the watch is due to end.
// It is called if the queue is known to have no consumers.
func (s *Store) WatchOn(ctx context.Context, o deadletter.Origin, now, until time.Time) error {
	for {
		var n int64
		err := s.tx(ctx, classify, func(t *tx) error {
			origin, err := t.originID(o)
			if err != nil {
				return err
			}
			done, err := t.exec(`UPDATE letters SET due_at = $3 WHERE id IN (SELECT id FROM letters
				INDEXED BY letters_watched WHERE state = 'requeued' AND due_at <= $2
				AND coalesce(target, origin) = $1 LIMIT $4)`, origin, now.UnixMilli(), until.UnixMilli(), watchChunk)
			if err != nil {
				return err
			}
			n, err = done.RowsAffected()
			return err
		})
		if err != nil || n < watchChunk || !until.After(now) {
			return err
		}
	}
}
