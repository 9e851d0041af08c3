package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// A request with a scope reads each table through a common table expression of the same name. The
// expression contains only the rows in the scope. Therefore no query can forget the scope, not even
// a query that is added later. The tables in hiddenTables are empty for such a request.

// These are SQL conditions that select the rows which a request may see. The table "seen" contains
// the origins in the scope of the request. The unary plus keeps SQLite from using an index by
// origin, so that it uses the index that suits the query.
const (
	seenLetter = `EXISTS (SELECT 1 FROM main.letters x WHERE x.id = letter AND +x.origin IN seen)`
	seenGroup  = `EXISTS (SELECT 1 FROM main.groups x WHERE x.id = grp AND +x.origin IN seen)`
	seenWork   = `EXISTS (SELECT 1 FROM main.operation_counts x WHERE x.operation = operations.id AND x.origin IN seen)`
	allWork    = `NOT EXISTS (SELECT 1 FROM main.operation_counts x WHERE x.operation = operations.id AND x.n > 0
		AND x.origin NOT IN seen)`

	// seenAct is an SQL expression that is true if the request may see an act. If the act belongs
	// to an operation, the operation must be in the scope of the request. Otherwise all groups and
	// queues of the act must be in the scope, because the text of the act can name each of them.
	seenAct = `CASE WHEN operation IS NOT NULL THEN EXISTS (SELECT 1 FROM main.operation_counts x
		WHERE x.operation = events.operation AND x.origin IN seen)
			AND NOT EXISTS (SELECT 1 FROM main.operation_counts x WHERE x.operation = events.operation AND x.n > 0
			AND x.origin NOT IN seen)
		ELSE EXISTS (SELECT 1 FROM main.event_targets t WHERE t.event = events.id
		AND t.kind IN ('group', 'queue', 'redirect'))
			AND NOT EXISTS (SELECT 1 FROM main.event_targets t LEFT JOIN main.groups x ON t.kind = 'group'
			AND x.id = CAST(substr(t.name, 3) AS INTEGER)
				WHERE t.event = events.id AND CASE t.kind WHEN 'group' THEN x.origin IS NULL OR x.origin NOT IN seen
					WHEN 'queue' THEN ` + hiddenQueue + ` WHEN 'redirect' THEN ` + hiddenQueue + ` ELSE 1 END) END`
	hiddenQueue = `NOT EXISTS (SELECT 1 FROM main.origins o WHERE o.queue = t.name AND o.id IN seen) OR EXISTS (SELECT 1
		FROM main.origins o WHERE o.queue = t.name AND o.id NOT IN seen)`
	seenEvent = `CASE WHEN letter IS NOT NULL THEN ` + seenLetter + ` ELSE ` + seenAct + ` END`
)

// seenTables contains, for each table, the SQL that a request with a scope reads instead of the
// table. If the text is empty, the request reads the whole table.
var seenTables = map[string]string{
	"letters":     `SELECT * FROM main.letters WHERE +origin IN seen`,
	"attempts":    `SELECT * FROM main.attempts WHERE ` + seenLetter,
	"revisions":   `SELECT * FROM main.revisions WHERE ` + seenLetter,
	"body_fields": `SELECT * FROM main.body_fields WHERE ` + seenLetter,
	"unindexed":   `SELECT * FROM main.unindexed WHERE ` + seenLetter,
	"trials":      `SELECT * FROM main.trials WHERE ` + seenLetter,
	"annotations": `SELECT * FROM main.annotations WHERE queue = '' OR EXISTS (SELECT 1 FROM main.origins o
		WHERE o.queue = annotations.queue AND o.vhost = annotations.vhost AND o.id IN seen)`,
	"added":     `SELECT * FROM main.added WHERE ` + seenLetter,
	"runs":      `SELECT * FROM main.runs WHERE origin IN seen`,
	"counters":  `SELECT * FROM main.counters WHERE +origin IN seen`,
	"readings":  `SELECT * FROM main.readings WHERE origin IN seen`,
	"learned":   `SELECT * FROM main.learned WHERE origin IN seen`,
	"rollups":   `SELECT * FROM main.rollups WHERE ` + seenGroup,
	"deaths":    `SELECT * FROM main.deaths WHERE ` + seenGroup,
	"overdue":   `SELECT * FROM main.overdue WHERE ` + seenGroup,
	"origins":   `SELECT * FROM main.origins WHERE id IN seen`,
	"overrides": `SELECT * FROM main.overrides WHERE origin IN seen`,
	"pauses":    `SELECT * FROM main.pauses WHERE origin IN seen`,
	"breakers":  `SELECT * FROM main.breakers WHERE origin IN seen`,
	"resumed":   `SELECT * FROM main.resumed WHERE origin IN seen`,
	"picks": `SELECT * FROM main.picks WHERE CASE
		WHEN letter IS NOT NULL THEN ` + seenLetter + ` WHEN grp IS NOT NULL THEN ` + seenGroup + ` ELSE EXISTS
			(SELECT 1 FROM main.origins o WHERE o.queue GLOB picks.queue AND o.id IN seen) END`,
	"events": `SELECT * FROM main.events WHERE ` + seenEvent,
	"event_targets": `SELECT * FROM main.event_targets WHERE event IN (SELECT id FROM main.events
		WHERE letter IS NULL AND ` + seenAct + `)`,
	"notices": `SELECT * FROM main.notices WHERE CASE
		WHEN letter IS NOT NULL THEN ` + seenLetter + ` ELSE grp IS NOT NULL AND ` + seenGroup + ` END`,
	"decisions": `SELECT * FROM main.decisions d WHERE NOT EXISTS (SELECT 1 FROM main.decision_groups m
		JOIN main.groups x ON x.id = m.grp WHERE m.decision = d.id AND x.origin NOT IN seen)`,
	"decision_groups": `SELECT * FROM main.decision_groups m WHERE NOT EXISTS (SELECT 1 FROM main.decision_groups n
		JOIN main.groups x ON x.id = n.grp WHERE n.decision = m.decision AND x.origin NOT IN seen)`,
	"operation_groups":  `SELECT * FROM main.operation_groups WHERE ` + seenGroup,
	"operation_letters": `SELECT * FROM main.operation_letters WHERE +origin IN seen`,
	"operation_counts":  `SELECT * FROM main.operation_counts WHERE origin IN seen`,

	// If some groups of a merged group are in the scope, they form a merged group of their own. If
	// the head is outside the scope, the oldest group in the scope becomes the head.
	"groups": `SELECT CASE WHEN g.head IS NULL OR EXISTS (SELECT 1 FROM main.groups x WHERE x.id = g.head
		AND x.origin IN seen) THEN g.head
		ELSE (SELECT nullif(min(x.id), g.id) FROM main.groups x WHERE x.head = g.head
		AND x.origin IN seen) END AS head, g.* FROM main.groups g WHERE +g.origin IN seen`,

	// An operation may also act on letters outside the scope. The request then sees only the part
	// of the operation inside the scope. It does not see the fields that can name the rest. It does
	// see the operation's reason, because the histories of the letters contain the reason anyway.
	"operations": `SELECT (SELECT sum(x.n) FROM main.operation_counts x WHERE x.operation = operations.id
		AND x.origin IN seen) AS total, iif(` + allWork + `, query, '') AS query,
		iif(` + allWork + `, why, '') AS why, iif(` + allWork + `, target, '') AS target, iif(` + allWork +
		`, patch, NULL) AS patch,
		iif(` + allWork + `, excepted, 0) AS excepted, iif(` + allWork +
		`, changed, 0) AS changed, * FROM main.operations WHERE ` + seenWork,

	// these tables contain nothing about letters, or are only read together with letters
	"types": "", "words": "", "meta": "", "segments": "",
	// these tables determine who sends the request
	"users": "", "sessions": "", "invitations": "", "tokens": "", "token_networks": "",
	"schema_versions": "", "views": "",
}

// hiddenTables are the tables that are empty for a request with a scope, because they contain data
// about all queues.
var hiddenTables = []string{
	"inboxes", "windows", "unexplained", "deliveries", "deploys", "digests", "rereads", "unread", "progress", "marks",
	"restores", "declared", "operation_selections",
	"words_vocab",
}

var (
	tableNames = regexp.MustCompile(`\b[a-z_]+\b`)
	indexed    = regexp.MustCompile(`\sINDEXED BY [a-z_]+`)
)

// scopeQuery changes a query so that it reads only what is in the scope of the request.
func (s *Store) scopeQuery(ctx context.Context, query string) string {
	scope := deadletter.ScopeOf(ctx)
	query = strings.TrimSpace(query)
	if scope.Everywhere() || strings.HasPrefix(query, "PRAGMA ") {
		return query
	}
	with := []string{`seen AS (` + s.visibleOrigins(scope) + `)`}
	named := map[string]bool{}
	for _, word := range tableNames.FindAllString(query, -1) {
		if named[word] {
			continue
		}
		named[word] = true
		if text := seenTables[word]; text != "" {
			with = append(with, word+` AS NOT MATERIALIZED (`+text+`)`)
		} else if slices.Contains(hiddenTables, word) {
			with = append(with, word+` AS (SELECT * FROM main.`+word+` WHERE 0)`)
		}
	}
	query = indexed.ReplaceAllString(query, "") // a common table expression has no index
	separator := " "
	for _, own := range []string{"WITH RECURSIVE ", "WITH "} {
		if rest, ok := strings.CutPrefix(query, own); ok {
			query, separator = rest, ", "
			break
		}
	}
	return `WITH RECURSIVE ` + strings.Join(with, ", ") + separator + query
}

// seen is an SQL query that returns the ids of the origins in a scope.
type seen struct {
	generation int // generation of the names before the SQL was made
	text       string
}

// scopes caches the SQL of each scope.
type scopes struct {
	mu    sync.Mutex
	known map[string]seen // by the key of the scope
}

const maxScopes = 200 // maximum number of scopes in the cache

// visibleOrigins returns SQL for the ids of the origins in a scope. A letter of unknown origin is
// in a scope if its inbox is in the scope. Until dlo has decided what to do with the letter, its
// origin is 0, and the letter is only in scopes that include all inboxes.
//
// A write can be committed after the SQL was made and before it runs. That does not widen the
// scope: the SQL has only ids of committed names, which never change. Whether the scope includes
// all inboxes is decided when the SQL runs, because the write can have added an inbox.
func (s *Store) visibleOrigins(scope deadletter.Scope) string {
	key, generation := scope.Key(), s.names.generation()
	s.scopes.mu.Lock()
	defer s.scopes.mu.Unlock()
	if found, ok := s.scopes.known[key]; ok && found.generation == generation {
		return found.text
	}
	origins := s.names.originsWhere(func(p place) bool { return p.Queue != "" && scope.Includes(p.origin()) })
	unknown := s.names.unknownOriginsWhere(func(p place) bool { return scope.Includes(p.origin()) })
	text := `SELECT value AS origin FROM json_each('` + jsonList(append(origins, unknown...)) + `')`
	if len(unknown) > 0 {
		text += ` UNION ALL SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM main.inboxes WHERE -id NOT IN (SELECT value
			FROM json_each('` + jsonList(unknown) + `')))`
	}
	if len(s.scopes.known) >= maxScopes || s.scopes.known == nil {
		s.scopes.known = map[string]seen{}
	}
	s.scopes.known[key] = seen{generation, text}
	return text
}

// jsonList returns ids as a JSON list for json_each of SQLite.
func jsonList(ids []any) string {
	text, _ := json.Marshal(append([]any{}, ids...)) // json.Marshal cannot fail, because the list contains only numbers
	return string(text)
}

// tellsContent lists the fields of a query that search the contents of letters. Only people with
// the right to read letters may see these contents.
var tellsContent = []query.Field{query.Words, query.Header, query.Body, query.App, query.MessageID, query.CorrelationID}

// readableClause restricts a query that searches the contents of letters. If the request may not
// read all letters, readableClause returns an SQL condition for the letters that the request may
// read, and the result "limited" is true. If the request may not read any letters, the error wraps
// ErrDenied.
func (s *Store) readableClause(ctx context.Context, q query.Query) (c clause, limited bool, err error) {
	scope := deadletter.ScopeOf(ctx)
	i := slices.IndexFunc(q.Terms, func(t query.Term) bool { return slices.Contains(tellsContent, t.Field) })
	if i < 0 || scope.ReadsAll() {
		return c, false, nil
	}
	if !scope.ReadsSomewhere() {
		return c, false, fmt.Errorf(
			"%w: %s finds letters by their content, and that needs the role %s", deadletter.ErrDenied, q.Terms[i].Field,
			deadletter.RoleReader,
		)
	}
	reads := func(p place) bool { return p.Queue != "" && scope.Reads(p.origin()) }
	return inList("l.origin", append(s.names.originsWhere(reads), s.names.unknownOriginsWhere(reads)...)), true, nil
}
