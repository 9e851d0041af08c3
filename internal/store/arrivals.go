package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Arrivals contains the number and size of the letters that a store has received lately.
type Arrivals struct {
	Letters int
	Bytes   int64     // total size of their bodies
	Since   time.Time // time at which the first of them was received
}

// Arrivals counts at most arrivalsMax letters. It counts no letter that is older than arrivalsOf.
// Because of these limits, even a large store is read quickly.
const (
	arrivalsOf  = 7 * 24 * time.Hour
	arrivalsMax = 10000
)

// ReadArrivals counts the latest letters in the store file at the given path. It changes nothing,
// so another process may use the store at the same time.
func ReadArrivals(ctx context.Context, path string, now time.Time) (Arrivals, error) {
	db, err := sql.Open("sqlite", dsn(path, "ro"))
	if err != nil {
		return Arrivals{}, err
	}
	defer db.Close()
	var a Arrivals
	var since int64
	err = db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(size), 0), coalesce(min(received_at), 0)
		FROM (SELECT size, received_at FROM letters ORDER BY id DESC LIMIT $1) latest
		WHERE received_at >= $2`, arrivalsMax, now.Add(-arrivalsOf).UnixMilli()).Scan(&a.Letters, &a.Bytes, &since)
	if err != nil {
		return a, fmt.Errorf("letters received lately: %w", err)
	}
	a.Since = time.UnixMilli(since)
	return a, nil
}

// PerHour returns the mean number of letters per hour. If all letters arrived within the last hour,
// it returns their number.
func (a Arrivals) PerHour(now time.Time) float64 {
	return float64(a.Letters) / max(1, now.Sub(a.Since).Hours())
}
