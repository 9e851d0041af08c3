package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Arrivals are the letters that a store has received lately.
type Arrivals struct {
	Letters int
	Bytes   int64     // of their bodies
	Since   time.Time // when the first of them was received
}

// These constants limit Arrivals to the latest letters, so that reading a large store takes no
// time.
const (
	arrivalsOf  = 7 * 24 * time.Hour
	arrivalsMax = 10000
)

// ReadArrivals reads the latest letters of the store in a file, even while another process uses the
// store. It changes nothing.
func ReadArrivals(ctx context.Context, path string, now time.Time) (Arrivals, error) {
	db, err := sql.Open("sqlite", dsn(path, "ro"))
	if err != nil {
		return Arrivals{}, err
	}
	defer db.Close()
	var a Arrivals
	var since int64
	err = db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(size), 0), coalesce(min(received_at), 0)
		FROM (SELECT size, received_at FROM letters ORDER BY id DESC LIMIT $1) latest WHERE received_at >= $2`, arrivalsMax, now.Add(-arrivalsOf).UnixMilli()).Scan(&a.Letters, &a.Bytes, &since)
	if err != nil {
		return a, fmt.Errorf("letters received lately: %w", err)
	}
	a.Since = time.UnixMilli(since)
	return a, nil
}

// PerHour returns the mean number of letters in an hour. If all letters arrived within the last
// hour, it returns their number.
func (a Arrivals) PerHour(now time.Time) float64 {
	return float64(a.Letters) / max(1, now.Sub(a.Since).Hours())
}
