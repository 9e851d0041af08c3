package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// exactValues returns the values that stand for exactly the given texts.
func exactValues(texts ...string) []Value {
	var out []Value
	for _, s := range texts {
		out = append(out, Value{Raw: pattern([]string{s}), Pattern: []string{s}})
	}
	return out
}

// glob returns the value of a pattern. Every star in the pattern stands for any text.
func glob(s string) Value { return Value{Raw: s, Pattern: strings.Split(s, "*")} }

func ago(d time.Duration) time.Time { return now.Truncate(time.Millisecond).Add(-d) }

func TestParse(t *testing.T) {
	t.Parallel()
	afternoon := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, text string
		want       []Term
	}{
		{"nothing selects everything", "  ", nil},
		{
			"a comma is OR, a space is AND",
			"state:dead,held\tqueue:sms",
			[]Term{{Field: State, Values: exactValues("dead", "held")}, {Field: Queue, Values: exactValues("sms")}},
		},
		{
			"a field twice is two terms",
			"queue:a queue:b",
			[]Term{{Field: Queue, Values: exactValues("a")}, {Field: Queue, Values: exactValues("b")}},
		},
		{
			"a minus negates the whole term",
			"-queue:a,b",
			[]Term{{Field: Queue, Not: true, Values: exactValues("a", "b")}},
		},
		{"a minus inside of a value is text", "queue:a,-b", []Term{{Field: Queue, Values: exactValues("a", "-b")}}},
		{
			"quotes hold spaces, commas, quotes and colons",
			`queue:"a b","c,d" type:"say \"x:y\" \\"`,
			[]Term{
				{Field: Queue, Values: exactValues("a b", "c,d")},
				{Field: Type, Values: exactValues(`say "x:y" \`)},
			},
		},
		{
			"a plain value may hold a colon and a backslash",
			`queue:a:b\c`,
			[]Term{{Field: Queue, Values: exactValues(`a:b\c`)}},
		},
		{
			"field names in any case",
			"STATE:Dead Header.X-Foo:B",
			[]Term{
				{Field: State, Values: exactValues("dead")},
				{Field: Header, Name: "X-Foo", Values: exactValues("B")},
			},
		},
		{"a value once", "reason:x,x,y", []Term{{Field: Reason, Values: exactValues("x", "y")}}},
		{"an empty value is quoted", `exchange:""`, []Term{{Field: Exchange, Values: exactValues("")}}},

		{"a glob", "queue:billing.*", []Term{{Field: Queue, Values: []Value{glob("billing.*")}}}},
		{
			"a glob with stars everywhere",
			"error:*no*route*",
			[]Term{{Field: ErrorText, Values: []Value{glob("*no*route*")}}},
		},
		{
			"a glob in quotes",
			`error:"*unknown field*"`,
			[]Term{{Field: ErrorText, Values: []Value{glob("*unknown field*")}}},
		},
		{"stars side by side are one", "queue:a***b", []Term{{Field: Queue, Values: []Value{glob("a*b")}}}},
		{"a literal star", `queue:a\*b,"c\*d"`, []Term{{Field: Queue, Values: exactValues("a*b", "c*d")}}},
		{"a backslash before a star, in quotes", `queue:"a\\*"`, []Term{{Field: Queue, Values: []Value{glob(`a\*`)}}}},
		{"globs of all text fields", "vhost:*a broker:*a type:*a owner:*a reason:*a", []Term{
			{Field: VHost, Values: []Value{glob("*a")}},
			{Field: Broker, Values: []Value{glob("*a")}},
			{Field: Type, Values: []Value{glob("*a")}},
			{Field: Owner, Values: []Value{glob("*a")}},
			{Field: Reason, Values: []Value{glob("*a")}},
		}},
		{
			"whole values and beginnings of indexed fields",
			`exchange:acme* key:customer.#,a.* app:x rule:y* message_id:m* correlation_id:c header.x-tenant:48*`,
			[]Term{
				{Field: Exchange, Values: []Value{glob("acme*")}},
				{Field: Key, Values: []Value{exactValues("customer.#")[0], glob("a.*")}},
				{Field: App, Values: exactValues("x")},
				{Field: Rule, Values: []Value{glob("y*")}},
				{Field: MessageID, Values: []Value{glob("m*")}},
				{Field: CorrelationID, Values: exactValues("c")},
				{Field: Header, Name: "x-tenant", Values: []Value{glob("48*")}},
			},
		},
		{
			"a star alone: it has the header",
			"-header.x-error:*",
			[]Term{{Field: Header, Name: "x-error", Not: true, Values: []Value{glob("*")}}},
		},
		{
			"a header whose name has spaces, colons and stars",
			`header."x \"y\": *":1`,
			[]Term{{Field: Header, Name: `x "y": *`, Values: exactValues("1")}},
		},
		{
			"a path of the body",
			"body.customer.id:48213",
			[]Term{{Field: Body, Name: "customer.id", Values: exactValues("48213")}},
		},
		{"letters without a type", "type:none", []Term{{Field: Type, Values: exactValues(NoType)}}},

		{
			"enumerations",
			"severity:page,digest status:new,regressed",
			[]Term{
				{Field: Severity, Values: exactValues("page", "digest")},
				{Field: Status, Values: exactValues("new", "regressed")},
			},
		},
		{
			"a group by its name, or its number",
			"group:G-418,7,g-7",
			[]Term{{Field: Group, Values: exactValues("G-418", "G-7")}},
		},
		{
			"a whole id and a short one",
			"id:0197A3C2-5b1e-7ac0-9d3f-44e2a6b18c20,A6B18C20",
			[]Term{{Field: ID, Values: exactValues("0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20", "a6b18c20")}},
		},
		{"an operation and a result of it", "op:o-77,O-78/came-back,O-79/DONE", []Term{{Field: Op, Values: []Value{
			{Raw: "O-77", Pattern: []string{"O-77"}, Op: 77},
			{Raw: "O-78/came-back", Pattern: []string{"O-78/came-back"}, Op: 78, Result: deadletter.ResultCameBack},
			{Raw: "O-79/done", Pattern: []string{"O-79/done"}, Op: 79, Result: deadletter.ResultChanged},
		}}}},

		{"attempts", "attempts:0,<2,<=3,>4,>=5", []Term{{Field: Attempts, Values: []Value{
			{Raw: "0"},
			{Raw: "<2", Compare: Less, Number: 2},
			{Raw: "<=3", Compare: AtMost, Number: 3},
			{Raw: ">4", Compare: More, Number: 4},
			{Raw: ">=5", Compare: AtLeast, Number: 5},
		}}}},
		{"sizes", "size:0,>12B,>=1KB,<1kB,<=2KiB,>1MB,>1MiB,>1GiB,>1gb", []Term{{Field: Size, Values: []Value{
			{Raw: "0"},
			{Raw: ">12B", Compare: More, Number: 12},
			{Raw: ">=1KB", Compare: AtLeast, Number: 1000},
			{Raw: "<1kB", Compare: Less, Number: 1000},
			{Raw: "<=2KiB", Compare: AtMost, Number: 2048},
			{Raw: ">1MB", Compare: More, Number: 1e6},
			{Raw: ">1MiB", Compare: More, Number: 1 << 20},
			{Raw: ">1GiB", Compare: More, Number: 1 << 30},
			{Raw: ">1gb", Compare: More, Number: 1e9},
		}}}},
		{"ages", "age:>90s age:>=15m age:<3d -age:<=1w2d", []Term{
			{Field: Age, Values: []Value{{Raw: ">90s", Compare: More, Time: ago(90 * time.Second)}}},
			{Field: Age, Values: []Value{{Raw: ">=15m", Compare: AtLeast, Time: ago(15 * time.Minute)}}},
			{Field: Age, Values: []Value{{Raw: "<3d", Compare: Less, Time: ago(72 * time.Hour)}}},
			{Field: Age, Not: true, Values: []Value{{Raw: "<=1w2d", Compare: AtMost, Time: ago(9 * 24 * time.Hour)}}},
		}},
		{
			"how long ago",
			"since:2h before:1h30m",
			[]Term{
				{Field: Since, Values: []Value{{Raw: "2h", Time: ago(2 * time.Hour)}}},
				{Field: Before, Values: []Value{{Raw: "1h30m", Time: ago(90 * time.Minute)}}},
			},
		},
		{
			"a date is its first moment in UTC",
			"since:2026-11-20",
			[]Term{{Field: Since, Values: []Value{{Raw: "2026-11-20", Time: afternoon.Add(-14 * time.Hour)}}}},
		},
		{
			"a day by its name begins at midnight in UTC",
			"since:Yesterday before:today",
			[]Term{
				{Field: Since, Values: []Value{{Raw: "Yesterday", Time: afternoon.Add(-38 * time.Hour)}}},
				{Field: Before, Values: []Value{{Raw: "today", Time: afternoon.Add(-14 * time.Hour)}}},
			},
		},
		{
			"a time without seconds",
			"since:2026-11-20T14:00Z",
			[]Term{{Field: Since, Values: []Value{{Raw: "2026-11-20T14:00Z", Time: afternoon}}}},
		},
		{
			"a time without a zone is UTC",
			"since:2026-11-20T14:00",
			[]Term{{Field: Since, Values: []Value{{Raw: "2026-11-20T14:00", Time: afternoon}}}},
		},
		{
			"a time with seconds, without a zone",
			"since:2026-11-20t14:00:30",
			[]Term{
				{Field: Since, Values: []Value{{Raw: "2026-11-20t14:00:30", Time: afternoon.Add(30 * time.Second)}}},
			},
		},
		{
			"a time in another zone",
			"before:2026-11-20T15:00:00+01:00",
			[]Term{{Field: Before, Values: []Value{{Raw: "2026-11-20T15:00:00+01:00", Time: afternoon}}}},
		},
		{
			"a part of a millisecond is the next one",
			"before:2026-11-20T14:00:00.0001Z",
			[]Term{
				{
					Field:  Before,
					Values: []Value{{Raw: "2026-11-20T14:00:00.0001Z", Time: afternoon.Add(time.Millisecond)}},
				},
			},
		},

		{
			"words",
			"tenant unknown",
			[]Term{{Field: Words, Values: exactValues("tenant")}, {Field: Words, Values: exactValues("unknown")}},
		},
		{
			"free text comes last",
			"tenant state:dead",
			[]Term{{Field: State, Values: exactValues("dead")}, {Field: Words, Values: exactValues("tenant")}},
		},
		{
			"a word of dots, dashes, slashes and commas",
			"a/b.c-d_e,f=g",
			[]Term{{Field: Words, Values: exactValues("a/b.c-d_e,f=g")}},
		},
		{"the beginning of a word", "time*", []Term{{Field: Words, Values: []Value{glob("time*")}}}},
		{
			"stars side by side behind a word",
			`st\*r**`,
			[]Term{{Field: Words, Values: []Value{{Raw: `st\*r*`, Pattern: []string{"st*r", ""}}}}},
		},
		{"not a word", "-timeout", []Term{{Field: Words, Not: true, Values: exactValues("timeout")}}},
		{
			"quoted text",
			`-"tenant: \"48213\"" "-x"`,
			[]Term{
				{Field: Words, Not: true, Values: exactValues(`tenant: "48213"`)},
				{Field: Words, Values: exactValues("-x")},
			},
		},
		{
			"a star in quoted text is only a star",
			`"SELECT *"`,
			[]Term{{Field: Words, Values: []Value{{Raw: "SELECT *", Pattern: []string{"SELECT *"}}}}},
		},
		{
			"the name of a field is a word, too",
			"state id=5",
			[]Term{{Field: Words, Values: exactValues("state")}, {Field: Words, Values: exactValues("id=5")}},
		},
		{
			"words of any script",
			"Größe 注文",
			[]Term{{Field: Words, Values: exactValues("Größe")}, {Field: Words, Values: exactValues("注文")}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parse(t, c.text)
			if diff := cmp.Diff(c.want, got.Terms); diff != "" {
				t.Error(diff)
			}
			again := parse(t, got.String())
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("%s, read again: %s", got, diff)
			}
		})
	}
}

// TestAForgottenColonIsNoticed checks the error for a query like "attempts>=3", which lacks the
// colon before the comparison. It tests every field whose example in the help contains a
// comparison.
func TestAForgottenColonIsNoticed(t *testing.T) {
	t.Parallel()
	for _, h := range Help() {
		name, compared, _ := strings.Cut(h.Example, ":")
		if !strings.ContainsAny(compared, "<>") {
			continue
		}
		if _, err := Parse(name+compared, atNow); err == nil ||
			!strings.Contains(err.Error(), "a colon is missing here, for example "+h.Example) {
			t.Errorf("%s%s is answered %v", name, compared, err)
		}
	}
}

// TestAWrongNumberIsOfTheFieldThatWasAsked checks that the error for a wrong number names the right
// field, although all fields with numbers use the same parser.
func TestAWrongNumberIsOfTheFieldThatWasAsked(t *testing.T) {
	t.Parallel()
	if _, err := parseNumber("nacks", ""); err == nil || !strings.HasPrefix(err.Error(), "nacks is a number") {
		t.Error(err)
	}
}

func TestMistakesHaveAPosition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		pos  int
		want string
	}{
		{"state:", 6, "value is missing"},
		{"state:dead,", 11, "value is missing"},
		{"state:dead,,held", 11, "value is missing"},
		{`queue:"open`, 6, "not closed"},
		{`queue:"open\`, 6, "not closed"},
		{`state:dead "open`, 11, "not closed"},
		{`queue:"a"b`, 9, "after a closing quote"},
		{`queue:a"b"`, 7, "quotes go around"},
		{`"a"b`, 3, "after a closing quote"},
		{`"a","b"`, 3, "after a closing quote"},
		{`a"b"`, 1, "quotes go around"},
		{"state:dead -", 12, "a term is missing"},
		{"- state:dead", 1, "a term is missing"},
		{"--force", 1, "two minus signs"},
		{"queue:" + strings.Repeat("a", 5000), MaxText, "at most 4096 bytes"},
		{strings.Repeat("a ", maxTerms) + "b", 2 * maxTerms, "at most 50 terms"},
		{"queue:" + strings.Repeat("a,", maxValues) + "b", 6 + 2*maxValues, "at most 500 values"},

		{"state:dead quue:a", 11, `no field "quue" (did you mean queue?); the fields are state, queue`},
		{"-quue:a", 1, "did you mean queue?"},
		{"recieved:x", 0, `no field "recieved"`},
		{"http://example.com", 0, `no field "http"`},
		{"12:30", 0, "put text that contains a colon in quotes"},
		{":x", 0, `no field ""`},
		{"words:x", 0, `no field "words"`},
		{"ex\x1b[31m:x", 0, `no field "ex\\x1b[31m"`},
		{"queue.name:x", 5, "queue has no parts: it is written queue:"},
		{"header:x", 6, "header.x-tenant"},
		{"body:x", 4, "body.customer.id"},
		{"header.:x", 7, "a name is missing"},
		{`header."":x`, 7, "a name is missing"},
		{"header.x-*:x", 9, "a name has no stars"},
		{`header."x" y`, 10, "a quoted name comes a colon"},
		{`header."x`, 7, "not closed"},
		{`header."x"`, 10, "a quoted name comes a colon"},
		{`queue."x":y`, 6, "quotes go around"},

		{"state:dead header.authorization:x", 11, "header.authorization is masked"},
		{"-header.authorization:*", 1, "is masked"},
		{`header."authorization":x`, 0, "is masked"},
		{"body.customer.email:x", 0, "body.customer.email is masked"},
		{"app:x", 0, "app is masked"},
		{"body.customer.name:x", 0, "add customer.name to search.fields"},

		{"state:deaf", 6, `no state "deaf" (did you mean dead?); there are received, scheduled, dead, held`},
		{"state:dead,xyzzy", 11, `no state "xyzzy"; there are`},
		{"state:*", 6, "there are received"},
		{"severity:loud", 9, "there are page, notify, digest"},
		{"status:newish", 7, "there are new, open, escalating, regressed, snoozed, resolved"},
		{"read:json5", 5, `read has no value "json5" (did you mean json?); there are`},
		{"group:G-x", 6, "G-418"},
		{"group:0", 6, "G-418"},
		{"group:G-*", 6, "G-418"},
		{"op:77x", 3, "O-77/came-back"},
		{"op:O-77/came", 3, `no result "came"; there are pending, released`},
		{"op:O-77/", 3, `no result ""`},
		{"op:O-77/skiped", 3, "did you mean skipped?"},
		{"id:a6b18c2", 3, "8 hex digits"},
		{"id:a6b18c2x", 3, "8 hex digits"},
		{"id:a6b18c2*", 3, "8 hex digits"},
		{"id:0197a3c2-5b1e-4ac0-9d3f-44e2a6b18c20", 3, "message_id:"},

		{"attempts:many", 9, ">=3"},
		{"attempts:-1", 9, ">=3"},
		{"attempts:3.5", 9, ">=3"},
		{"attempts:>", 9, ">=3"},
		{"attempts:=>3", 9, ">=3"},
		{"attempts:3*", 9, ">=3"},
		{"attempts:99999999999999999999", 9, ">=3"},
		{"attempts>=3", 8, "for example attempts:>=3"},
		{"age>2h", 3, "for example age:>2h"},
		{"size:big", 5, "GiB"},
		{"size:1TiB", 5, "GiB"},
		{"size:1.5MiB", 5, "whole number"},
		{"size:9223372036854775807KiB", 5, "GiB"},
		{"age:2h", 4, "a comparison and a duration"},
		{"age:>2", 4, "a duration"},
		{"age:>2y", 4, "s, m, h, d or w"},
		{"age:>0s", 4, "a duration"},
		{"age:>1d,<1h", 7, "age has one value"},
		{"since:1h,2h", 8, "since has one value"},
		{"sort:oldest,size", 11, "sort has one value"},
		{"sort:oldest queue:a sort:size", 20, "a list has one order"},
		{"-sort:oldest", 1, "an order is not negated"},
		{"sort:loudest", 5, `letters are not sorted by "loudest"`},
		{"since:tomorrow", 6, "today or yesterday"},
		{"since:2026-13-01", 6, "2026-11-20"},
		{"since:2026-02-30", 6, "2026-11-20"},
		{"since:2026-11-20Z", 6, "2026-11-20T14:00Z"},
		{`since:"2026-11-20T14:00:30,5Z"`, 6, "2026-11-20"},
		{"since:101y", 6, "1w"},
		{"before:5201w1d200w", 7, "1w"},
		{"before:9223372036854775807w", 7, "1w"},

		{"exchange:*x", 9, "a star goes at the end only"},
		{"key:a,b*c*", 7, "key takes a whole value or its beginning"},
		{"message_id:*a*", 11, "free text"},
		{`correlation_id:"a *b"`, 18, "at the end only"},
		{"rule:a*b", 6, "at the end only"},
		{"header.x:a*b", 10, "at the end only"},
		{"body.customer.id:*1", 17, "at the end only"},

		{"state:dead *", 11, "no word to search for"},
		{"...", 0, "no word to search for"},
		{`"  "`, 0, "no word to search for"},
		{"ti*me", 2, "at the end of a word"},
		{"*time", 0, "at the end of a word"},
		{"a OR b", 2, "a comma means OR"},
		{"a AND b", 2, "a space means AND"},
		{"NOT b", 0, "a minus means NOT"},
	} {
		_, err := Parse(c.text, atNow)
		var mistake *Error
		if !errors.As(err, &mistake) || mistake.Pos != c.pos || !strings.Contains(mistake.Want, c.want) ||
			!errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("Parse(%.60q) = %v, want position %d with %q", c.text, err, c.pos+1, c.want)
		}
		if err != nil && deadletter.Visible(err.Error()) != err.Error() {
			t.Errorf("Parse(%.60q) = %q, which is not safe on a terminal", c.text, err)
		}
	}
}

func TestNothingOfTheBodyIsSearchableUnlessSaid(t *testing.T) {
	t.Parallel()
	if _, err := Parse("body.a:1", Options{}); err == nil || !strings.Contains(err.Error(), "search.fields") {
		t.Error(err)
	}
	if q, err := Parse(
		"header.authorization:1 since:1h", Options{},
	); err != nil || time.Since(q.Terms[1].Values[0].Time) < time.Hour {
		t.Error(q, err)
	}
}

func TestEveryFieldHasHelpWhoseExampleAndValuesParse(t *testing.T) {
	t.Parallel()
	var fields []Field
	for _, h := range Help() {
		fields = append(fields, h.Field)
		if h.Help == "" || parse(t, h.Example).Terms[0].Field != h.Field {
			t.Errorf("%+v", h)
		}
		for _, v := range h.Values {
			parse(t, string(h.Field)+":"+v)
		}
	}
	if !slices.Equal(fields, Fields) {
		t.Errorf("help is about %s, and the fields are %s", fields, Fields)
	}
}

func Example() {
	q, err := Parse(`"tenant unknown" state:dead,held queue:billing.* -reason:expired since:2h`, Options{
		Now: time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q)
	fmt.Println(q.Fixed())
	fmt.Println(q.With(Queue, "sms").Without(3))
	_, err = Parse("state:dead quue:sms", Options{})
	sentence, _, _ := strings.Cut(err.Error(), ";")
	fmt.Println(sentence)
	// Output:
	// state:dead,held queue:billing.* -reason:expired since:2h "tenant unknown"
	// state:dead,held queue:billing.* -reason:expired since:2026-11-20T12:00:00.000Z "tenant unknown"
	// state:dead,held queue:sms -reason:expired "tenant unknown"
	// at character 12: there is no field "quue" (did you mean queue?)
}

// TestAnIndexedPathWithoutItsPrefixIsNamed checks a query in which the path of a body field lacks
// its prefix. People forget the prefix because the titles of facets do not contain it. The error
// must suggest the path with its prefix.
func TestAnIndexedPathWithoutItsPrefixIsNamed(t *testing.T) {
	t.Parallel()
	_, err := Parse("tenant_id:48213", Options{Body: func(path string) bool { return path == "tenant_id" }})
	if err == nil || !strings.Contains(err.Error(), `there is no field "tenant_id" (did you mean body.tenant_id?)`) {
		t.Error(err)
	}
}
