package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// maxClaim is the maximum total size in bytes of the letter bodies in one claim. The bodies stay in
// memory until the broker's confirms are recorded. A single larger body is claimed alone.
const maxClaim = 32 << 20

// ClaimDue takes up to n due scheduled letters of a broker and commits the intent to publish them.
// Each letter gets the state "publishing", an attempt with its own token, and the epoch of this
// process. The Allowance limits how many automatic retries may be sent now. It does not limit
// letters that an operation released. ClaimDue takes no letters of paused queues and groups. If a
// letter is to wait in the broker and its waiter is in a.Waiters, ClaimDue takes it before it is
// due.
func (s *Store) ClaimDue(
	ctx context.Context, broker string, now time.Time, n int, a deadletter.Allowance,
) ([]deadletter.Due, error) {
	origins, released, err := s.dueOrigins(ctx, broker, now, a.Waiters)
	if err != nil || len(origins) == 0 && !released {
		return nil, err
	}
	origins = s.turns.next(broker, origins)
	var claimed []deadletter.Due
	err = s.tx(ctx, dispatch, func(t *tx) error {
		claimed = nil
		bytes := 0
		take := func(limit int, how taking, where string, args ...any) error {
			if limit = min(limit, n-len(claimed)); limit <= 0 || bytes >= maxClaim {
				return nil
			}
			candidates, err := t.candidates(where, append(args, limit)...)
			if err != nil {
				return err
			}
			for i := range candidates {
				r := &candidates[i]
				if bytes > 0 && bytes+r.sent > maxClaim {
					bytes = maxClaim
					break
				}
				bytes += r.sent
				if how.early && tooLateToWait(r.waiter, r.wait, r.dueAt.Int64, now) {
					if _, err := t.exec(`UPDATE letters SET waiter = '' WHERE id = $1`, r.id); err != nil {
						return err
					}
					continue
				}
				d, err := t.claim(r, how)
				if err != nil {
					return err
				}
				claimed = append(claimed, d)
			}
			return t.storeClaims()
		}
		for _, id := range origins {
			o := t.s.names.origin(id).origin()
			// The function "lane" takes letters in two steps: first the letters that are due, and
			// then those that are to wait in the broker.
			lane := func(limit int, probe bool, only string, args ...any) error {
				args = append([]any{id, now.UnixMilli()}, args...)
				before := len(claimed)
				if err := take(
					limit, taking{probe: probe},
					fmt.Sprintf(`%s%s ORDER BY l.due_at LIMIT $%d`, dueLetters, only, len(args)+1), args...,
				); err != nil {
					return err
				}
				if probe { // a probe is always a due letter
					return nil
				}
				for _, w := range a.Waiters {
					text := fmt.Sprintf(
						`%s AND l.waiter = $%d%s ORDER BY l.due_at LIMIT $%d`, earlyLetters, len(args)+1, only,
						len(args)+2,
					)
					if err := take(
						limit-(len(claimed)-before), taking{early: true}, text,
						append(args[:len(args):len(args)], w)...,
					); err != nil {
						return err
					}
				}
				return nil
			}
			var shares []deadletter.GroupShare
			if a.Shares != nil {
				shares = a.Shares(o)
			}
			// The function "parted" takes letters of a queue in which breakers limit some groups.
			// It first takes letters of these groups, at most as many as the share of each group
			// permits. The other groups get what is left of the limit.
			parted := func(limit int, probe bool, only string, args ...any) error {
				rest, apart := only, args
				for i := range shares {
					share, before := &shares[i], len(claimed)
					if err := lane(
						min(limit, share.N), share.Probe, fmt.Sprintf(`%s AND l.grp = $%d`, only, 3+len(args)),
						append(args[:len(args):len(args)], int64(share.Group))...,
					); err != nil {
						return err
					}
					limit -= len(claimed) - before
					share.N -= len(claimed) - before
					apart = append(apart[:len(apart):len(apart)], int64(share.Group))
				}
				if len(shares) > 0 {
					rest += ` AND l.grp NOT IN (` + placeholders(3+len(args), len(shares)) + `)`
				}
				return lane(limit, probe, rest, apart...)
			}
			var others []any
			for _, rule := range a.Rules {
				limit, probe := a.Allow(o, rule)
				if err := parted(limit, probe, ` AND l.rule = $3`, rule); err != nil {
					return err
				}
				others = append(others, rule)
			}
			limit, probe := a.Allow(o, "")
			except := ""
			if len(others) > 0 {
				except = ` AND l.rule NOT IN (` + placeholders(3, len(others)) + `)`
			}
			if err := parted(limit, probe, except, others...); err != nil {
				return err
			}
		}
		if !released {
			return t.readContents(claimed)
		}
		if err := take(n, taking{}, `INDEXED BY letters_released WHERE l.state = 'scheduled' AND l.operation IS NOT NULL
			AND l.waits_in IS NULL AND l.due_at <= $1
			AND coalesce(l.target, l.origin) IN (SELECT id FROM origins WHERE broker = $2) AND l.operation IN (SELECT id
			FROM operations WHERE phase <> 'over' AND state = 'running')
			ORDER BY l.due_at, l.id LIMIT $3`, now.UnixMilli(), broker); err != nil {
			return err
		}
		return t.readContents(claimed)
	})
	if err != nil {
		return nil, fmt.Errorf("claim due letters: %w", err)
	}
	return claimed, nil
}

// turns contains, for each broker, the origin with which the last claim began. The next claim
// begins with another origin. If every claim began with the first queue, all other queues would
// wait for as long as the first queue has due letters.
type turns struct {
	mu    sync.Mutex
	began map[string]int64
}

// next rotates the sorted list of origins. The origin whose turn it is comes first.
func (t *turns) next(broker string, origins []int64) []int64 {
	if len(origins) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i, _ := slices.BinarySearch(origins, t.began[broker]+1)
	i %= len(origins)
	if t.began == nil {
		t.began = map[string]int64{}
	}
	t.began[broker] = origins[i]
	return slices.Concat(origins[i:], origins[:i])
}

type taking struct {
	probe bool // the letter is claimed as the probe of a breaker
	early bool // the letter is claimed before it is due, to wait in the broker
}

// tooLateToWait reports whether it is too late to put a letter into a wait queue with one fixed
// delay. The queue would keep the letter for the whole delay, so the letter must wait in the store.
// The parameters "wait" and "due" are in milliseconds.
func tooLateToWait(waiter string, wait, due int64, now time.Time) bool {
	return waiter == deadletter.WaiterQueue && due-now.UnixMilli() < wait-max(1000, wait/10)
}

// notPaused is an SQL condition that excludes letters of paused groups. It does not check whether
// the whole queue is paused.
const notPaused = `l.grp NOT IN (SELECT grp FROM pauses WHERE grp > 0)`

// dueLetters selects the letters of origin $1 whose automatic retry is due at the time $2.
const dueLetters = `INDEXED BY letters_due WHERE l.state = 'scheduled' AND l.operation IS NULL AND l.waits_in IS NULL
	AND l.origin = $1 AND l.due_at <= $2
	AND NOT EXISTS (SELECT 1 FROM pauses WHERE origin = $1 AND grp = 0) AND ` + notPaused

// earlyLetters selects the letters of origin $1 that are to wait in the broker and are not yet due
// at the time $2.
const earlyLetters = `INDEXED BY letters_handed WHERE l.state = 'scheduled' AND l.operation IS NULL
	AND l.waits_in IS NULL AND l.waiter <> '' AND l.origin = $1 AND l.due_at > $2
	AND NOT EXISTS (SELECT 1 FROM pauses WHERE origin = $1 AND grp = 0) AND ` + notPaused

// dueOrigins returns the origins with letters that can be claimed now. These are letters whose
// automatic retry is due, and letters that are to wait in the broker. The result "released" is true
// if a letter that an operation released is due.
func (s *Store) dueOrigins(
	ctx context.Context, broker string, now time.Time, waiters []string,
) (origins []int64, released bool, err error) {
	early, args := "", []any{now.UnixMilli()}
	for _, w := range waiters {
		args = append(args, w)
		early += fmt.Sprintf(` OR EXISTS (SELECT 1 FROM letters l INDEXED BY letters_handed WHERE l.state = 'scheduled'
			AND l.operation IS NULL AND l.waits_in IS NULL AND l.waiter <> ''
			AND l.origin = c.origin AND l.waiter = $%d AND l.due_at > $1 AND `+notPaused+`)`, len(args))
	}
	// The query selects the distinct origins first, because the counters have one row per group. When
	// SQLite joined the counters directly, it read all due letters of the origin for each row
	// (modernc.org/sqlite v1.60.1; 800 groups and 2,500 letters took 2 s).
	ids, err := values[int64](s.ask(ctx, `SELECT c.origin FROM (SELECT DISTINCT origin FROM counters
		WHERE state = 'scheduled') c
		WHERE NOT EXISTS (SELECT 1 FROM pauses p WHERE p.origin = c.origin AND p.grp = 0)
		AND (EXISTS (SELECT 1 FROM letters l INDEXED BY letters_due
				WHERE l.state = 'scheduled' AND l.operation IS NULL AND l.waits_in IS NULL AND l.origin = c.origin
				AND l.due_at <= $1 AND `+notPaused+`)`+early+`)`, args...))
	if err != nil {
		return nil, false, err
	}
	for _, id := range ids {
		if s.names.origin(id).Broker == broker {
			origins = append(origins, id)
		}
	}
	slices.Sort(origins)
	err = s.askRow(ctx, `SELECT EXISTS (SELECT 1 FROM letters INDEXED BY letters_released WHERE state = 'scheduled'
		AND operation IS NOT NULL AND waits_in IS NULL
		AND due_at <= $1 AND coalesce(target, origin) IN (SELECT id FROM origins WHERE broker = $2)
		AND operation IN (SELECT id FROM operations WHERE phase <> 'over'
		AND state = 'running'))`, []any{now.UnixMilli(), broker}, &released)
	return origins, released, err
}

// NextDue returns the time at which the next scheduled letter becomes due. Something else may still
// hold the letter back at that time. If no letter becomes due after now, NextDue returns the zero
// time.
func (s *Store) NextDue(ctx context.Context, now time.Time) (time.Time, error) {
	var at sql.NullInt64
	err := s.askRow(ctx, `SELECT (SELECT due_at FROM letters INDEXED BY letters_next WHERE state = 'scheduled'
		AND due_at > $1 ORDER BY due_at LIMIT 1)`, []any{now.UnixMilli()}, &at)
	return timeOf(at), err
}

// candidate is a letter that can be claimed.
type candidate struct {
	record
	sent     int            // size in bytes of the body that is sent
	arrived  int64          // number of attempts that may have reached a queue
	redirect sql.NullString // queue of the saved redirect for the letter's queue
}

// candidates reads letters to claim. The parameter "where" is the end of the query.
func (t *tx) candidates(where string, args ...any) ([]candidate, error) {
	rows, err := t.query(`SELECT `+recordColumns+`, `+sentSize+`,
		(`+arrivedAttempts+`l.id), (SELECT target FROM overrides WHERE origin = l.origin) FROM letters l `+where, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(c *candidate) []any { return append(c.dest(), &c.sent, &c.arrived, &c.redirect) })
}

func (t *tx) claim(r *candidate, how taking) (deadletter.Due, error) {
	to, ok := r.state.On(deadletter.Claimed)
	if !ok {
		return deadletter.Due{}, fmt.Errorf("letter %d: %w: it is %s", r.id, deadletter.ErrConflict, r.state)
	}
	r.publishes++
	if err := t.setTarget(r); err != nil {
		return deadletter.Due{}, err
	}
	p, queue := t.route(&r.record)
	token, err := t.token(&r.record, r.arrived, queue)
	if err != nil {
		return deadletter.Due{}, err
	}
	d := deadletter.Due{
		Letter: deadletter.Letter{
			Row: deadletter.Row{
				ID:       deadletter.NewID(r.id, uint64(r.random)),
				State:    to,
				Attempts: r.attempts,
				Group:    deadletter.GroupID(r.group),
			},
			Nacks: r.nacks,
			Rule:  r.rule,
		},
		Attempt: deadletter.Attempt{
			Number:    r.attempts + 1,
			Token:     token,
			Sends:     1,
			Queue:     queue,
			Operation: deadletter.OperationID(r.operation.Int64),
			Outcome:   deadletter.OutcomeOpen,
			At:        time.UnixMilli(t.now),
			Probe:     how.probe,
			Revision:  r.revision,
		},
	}
	d.Letter.SetOrigin(p)
	d.Attempt.Letter = d.Letter.ID
	if r.dueAt.Valid {
		d.Letter.DueAt = timeOf(r.dueAt)
	}
	until := sql.NullInt64{}
	if how.early {
		d.Waiter, d.Wait, until = r.waiter, time.Duration(r.wait)*time.Millisecond, r.dueAt
	}
	t.claimed.attempts = append(
		t.claimed.attempts, r.id, r.publishes, d.Attempt.Number, d.Attempt.Token.Bytes(), queue, r.operation,
		string(deadletter.OutcomeOpen), t.now, how.probe, d.Waiter, until, r.revision,
	)
	t.claimed.letters = append(t.claimed.letters, r.id, r.publishes, r.target)
	t.step.claims = 1
	t.changeRecord(&r.record, func() { r.state = to })
	return d, nil
}

// sendings are values for the rows of letters that are sent, of their attempts, and of their
// results in operations, which a transaction has not stored yet.
type sendings struct{ attempts, letters, results []any }

// storeClaims stores the claims of a transaction. Until then, its queries find the letters as they
// were.
func (t *tx) storeClaims() error {
	c := t.claimed
	t.claimed = sendings{}
	if err := t.many(`INSERT INTO attempts (letter, n, number, token, queue, operation, outcome, at, probe, waiter,
		wait_until, revision) VALUES rows`, 12, c.attempts); err != nil {
		return err
	}
	return t.many(`WITH c (letter, tries, target) AS (VALUES rows)
		UPDATE letters SET state = 'publishing', tries = c.tries, epoch = ?, changed_at = ?, due_at = NULL, fixed = 0,
		waiter = '', unverified = 0, suspect = 0, target = c.target,
		reset = CASE WHEN EXISTS (SELECT 1 FROM operations o WHERE o.id = letters.operation
		AND o.reset = 1) THEN attempts + 1 ELSE reset END FROM c WHERE id = c.letter`, 3, c.letters, t.s.epoch, t.now)
}

// setTarget sets the target queue of a letter, unless the operation of the letter sets it. The
// target is that of a saved redirect for the letter's queue. If there is none, the letter goes to
// its own queue.
func (t *tx) setTarget(r *candidate) error {
	if r.operation.Valid && r.target.Valid {
		return nil
	}
	r.target = sql.NullInt64{}
	if !r.redirect.Valid {
		return nil
	}
	p := t.s.names.origin(r.origin)
	id, err := t.originID(deadletter.Origin{Broker: p.Broker, VHost: p.VHost, Queue: r.redirect.String})
	r.target = sql.NullInt64{Int64: id, Valid: true}
	return err
}

// route returns the origin of a letter and the queue to which the letter is sent. The broker and
// vhost in the returned origin are those of the target queue.
func (t *tx) route(r *record) (deadletter.Origin, string) {
	p := t.s.names.origin(r.origin)
	if !r.target.Valid {
		return p.origin(), p.Queue
	}
	to := t.s.names.origin(r.target.Int64)
	return deadletter.Origin{Broker: to.Broker, VHost: to.VHost, Queue: p.Queue}, to.Queue
}

// readContents reads the contents of claimed letters and the circumstances of their deaths. The
// contents of a letter are those of the revision in its newest attempt. The function runs in the
// transaction of the claim, so a letter that cannot be read does not stay claimed. A letter whose
// contents are lost cannot be published, and its properties contain the reason.
func (t *tx) readContents(claimed []deadletter.Due) error {
	if len(claimed) == 0 {
		return nil
	}
	args := make([]any, len(claimed))
	place := make(map[int64]*deadletter.Letter, len(claimed))
	for i := range claimed {
		serial, _, _ := claimed[i].Letter.ID.Split()
		args[i], place[serial] = serial, &claimed[i].Letter
		place[serial].Properties = deadletter.Properties{
			Headers: deadletter.Table{
				deadletter.HeaderUnread: deadletter.Unread{Why: "the store has lost them, with the body"},
			},
		}
	}
	rows, err := t.query(`SELECT `+sentContents+`,
		l.origin, coalesce(l.target, l.origin), l.reason, l.exchange, l.routing_key, l.died_at FROM letters l
		JOIN attempts a ON a.letter = l.id AND a.n = l.tries LEFT JOIN revisions v ON v.letter = l.id
		AND v.n = a.revision WHERE l.id IN (`+placeholders(1, len(args))+`)`, args...)
	if err != nil {
		return err
	}
	var found []sent
	if err := scan(rows, func() error {
		var s sent
		var origin, target int64
		var reason, exchange, key string
		var died sql.NullInt64
		if err := rows.Scan(append(s.into(), &origin, &target, &reason, &exchange, &key, &died)...); err != nil {
			return err
		}
		l := place[s.serial]
		l.Reason, l.DiedAt, l.Exchange, l.RoutingKey = reason, timeOf(died), exchange, key
		if t.s.names.isDamaged(origin) || t.s.names.isDamaged(target) {
			l.Damage = damagedName
		}
		found = append(found, s)
		return nil
	}); err != nil {
		return err
	}
	for i := range found {
		s := &found[i]
		ok, err := s.complete(t.ctx, t.messages)
		if err != nil {
			return err
		}
		l := place[s.serial]
		if !ok {
			l.Damage = damagedContents
		}
		l.Body, l.Size, l.Properties = s.body, len(s.body), deadletter.StoredProperties(s.properties)
	}
	return nil
}

// ClaimDoubtful claims up to n letters in doubt for a broker. dlo has begun to send such a letter,
// but does not know whether it arrived. There are two kinds of letters in doubt. An earlier process
// was sending letters of the first kind when it ended. This process must send letters of the second
// kind again after Mark.DueAt, because Mark.Resend was recorded for them.
//
// Each letter keeps its attempt and token, because it may already have been sent. ClaimDoubtful
// never takes a letter that this process is still publishing, even if the publish takes long.
func (s *Store) ClaimDoubtful(ctx context.Context, broker string, now time.Time, n int) ([]deadletter.Due, error) {
	var found bool
	if err := s.askRow(ctx, `SELECT EXISTS (SELECT 1 FROM letters WHERE state = 'publishing' AND epoch <> $1
		AND (epoch <> 0 OR resend_at <= $2))`,
		[]any{s.epoch, now.UnixMilli()}, &found); err != nil || !found {
		return nil, err
	}
	var claimed []deadletter.Due
	err := s.tx(ctx, dispatch, func(t *tx) error {
		claimed = nil
		candidates, err := t.candidates(`WHERE l.state = 'publishing' AND l.epoch <> $1
			AND (l.epoch <> 0 OR l.resend_at <= $2)
			AND coalesce(l.target, l.origin) IN (SELECT id FROM origins WHERE broker = $3) ORDER BY l.id
			LIMIT $4`, t.s.epoch, now.UnixMilli(), broker, n)
		if err != nil {
			return err
		}
		bytes := 0
		for i := range candidates {
			if bytes += candidates[i].sent; i > 0 && bytes > maxClaim {
				break
			}
			d, wait, err := t.claimAgain(&candidates[i].record, now)
			if err != nil {
				return err
			}
			if !wait {
				claimed = append(claimed, d)
			}
		}
		return t.readContents(claimed)
	})
	if err != nil {
		return nil, fmt.Errorf("claim doubtful letters: %w", err)
	}
	return claimed, nil
}

// claimAgain resumes the newest attempt of a letter. If the letter is to wait in a queue that keeps
// each letter for a fixed delay, the rest of its wait may be shorter than this delay. In that case,
// the result "postponed" is true, and the attempt is resumed when the wait is over.
func (t *tx) claimAgain(r *record, now time.Time) (due deadletter.Due, postponed bool, err error) {
	p, _ := t.route(r)
	id := deadletter.NewID(r.id, uint64(r.random))
	d := deadletter.Due{
		Letter: deadletter.Letter{
			Row: deadletter.Row{
				ID:       id,
				State:    r.state,
				Attempts: r.attempts,
			},
			Nacks: r.nacks,
			Rule:  r.rule,
		},
		Attempt: deadletter.Attempt{Letter: id},
	}
	d.Letter.SetOrigin(p)
	a := &d.Attempt
	var token []byte
	var operation sql.NullInt64
	var at int64
	var waiter string
	var until sql.NullInt64
	if err := t.row(`SELECT number, token, queue, operation, sends, outcome, at, waiter, wait_until, revision
		FROM attempts WHERE letter = $1 AND n = $2`, []any{r.id, r.publishes},
		&a.Number, &token, &a.Queue, &operation, &a.Sends, &a.Outcome, &at, &waiter, &until, &a.Revision); err != nil {
		return d, false, fmt.Errorf("attempt of letter %s: %w", id, err)
	}
	if until.Int64 > now.UnixMilli() { // otherwise the wait is over, and the letter goes to its queue
		d.Waiter, d.Wait, d.Letter.DueAt = waiter, time.Duration(r.wait)*time.Millisecond, timeOf(until)
		if tooLateToWait(waiter, r.wait, until.Int64, now) {
			_, err := t.exec(`UPDATE letters SET epoch = 0, resend_at = $2 WHERE id = $1`, r.id, until.Int64)
			return d, true, err
		}
	}
	a.Token, a.Operation, a.At = deadletter.TokenFromBytes(token), deadletter.OperationID(
		operation.Int64,
	), time.UnixMilli(at)
	if a.Outcome = deadletter.OutcomeInDoubt; a.Sends == 1 {
		if err := t.addEvent(
			r.id, 0, "in doubt", deadletter.Service.Name,
			fmt.Sprintf("attempt %d was sent, or was about to be, when its answer was lost", a.Number),
		); err != nil {
			return d, false, err
		}
	}
	if operation.Valid {
		if _, err := t.exec(`UPDATE operation_letters SET twice = 1 WHERE operation = $1
			AND letter = $2`, operation.Int64, r.id); err != nil {
			return d, false, err
		}
	}
	t.step.claims = 1
	a.Sends++
	if _, err := t.exec(`UPDATE attempts SET outcome = $3, sends = $4 WHERE letter = $1
		AND n = $2`, r.id, r.publishes, string(a.Outcome), a.Sends); err != nil {
		return d, false, err
	}
	_, err = t.exec(`UPDATE letters SET epoch = $2, resend_at = NULL WHERE id = $1`, r.id, t.s.epoch)
	return d, false, err
}
