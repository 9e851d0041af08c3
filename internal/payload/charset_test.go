package payload

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// written returns a text in another charset.
func written(t *testing.T, c interface {
	Bytes(b []byte) ([]byte, error)
}, text string,
) []byte {
	t.Helper()
	b, err := c.Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCharsets reads texts that are not UTF-8: by the charset that the letter declares, by the byte
// order mark, or by a guess, which must be marked.
func TestCharsets(t *testing.T) {
	t.Parallel()
	latin, cyrillic := charmap.ISO8859_1.NewEncoder(), charmap.Windows1251.NewEncoder()
	le := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder()
	be := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder()
	city := `{"street":"Große Gasse","city":"Nîmes"}`
	for _, c := range []struct {
		name    string
		body    []byte
		h       Hints
		kind    Kind
		has     string
		charset string
		guessed bool
	}{
		{
			"declared by the content type", written(t, latin, city),
			Hints{ContentType: "application/json; charset=ISO-8859-1"},
			JSON, "Große", "ISO-8859-1", false,
		},
		{
			"in quotes, with the name of Python", written(t, latin, "à bientôt"),
			Hints{ContentType: `text/plain; Charset="latin_1"`},
			Text, "à bientôt", "ISO-8859-1", false,
		},
		{
			"Cyrillic", written(t, cyrillic, `{"name":"Заря"}`),
			Hints{ContentType: "application/json;charset=Cp1251"},
			JSON, "Заря", "windows-1251", false,
		},
		{
			"Shift JIS with a backslash inside of a character", written(t, japanese.ShiftJIS.NewEncoder(), `{"item":"ソース表"}`),
			Hints{ContentType: "application/json; charset=Windows-31J"},
			JSON, "ソース表", "Shift_JIS", false,
		},
		{
			"declared by the content encoding", written(t, latin, "à bientôt"),
			Hints{ContentEncoding: "ISO-8859-15"},
			Text, "à bientôt", "ISO-8859-15", false,
		},
		{
			"UTF-16 without a mark", written(t, le, city),
			Hints{ContentType: "application/json; charset=utf-16"},
			JSON, "Nîmes", "UTF-16LE", false,
		},
		{"UTF-16 by its mark", written(t, be, city), Hints{}, JSON, "Nîmes", "UTF-16BE", true},
		{
			"UTF-16 by its mark, and declared", written(t, be, city),
			Hints{ContentType: "application/json; charset=UTF-16"},
			JSON, "Nîmes", "UTF-16BE", false,
		},
		{"a text, nothing declared", written(t, latin, "à bientôt, dit-elle"), Hints{}, Text, "à bientôt", "windows-1252", true},
		{"UTF-16, nothing declared", written(t, le, city), Hints{}, JSON, "Nîmes", "UTF-16LE", true},
		{"a text", written(t, latin, "à bientôt"), Hints{ContentType: "text/html"}, Text, "à bientôt", "windows-1252", true},
		{
			"ISO-2022-JP", written(t, japanese.ISO2022JP.NewEncoder(), `{"名前":"山田太郎"}`),
			Hints{ContentType: "application/json; charset=ISO-2022-JP"},
			JSON, "山田太郎", "ISO-2022-JP", false,
		},
		{
			"HZ", written(t, simplifiedchinese.HZGB2312.NewEncoder(), "to 北京"),
			Hints{ContentType: "text/plain; charset=hz-gb-2312"},
			Text, "to 北京", "HZ-GB-2312", false,
		},
		{"HZ without its escape", []byte("to {Beijing}"), Hints{ContentType: "text/plain; charset=hz-gb-2312"}, Text, "to {Beijing}", "", false},
		{"JSON, nothing declared", written(t, latin, city), Hints{}, JSON, "Große", "windows-1252", true},
		{
			"UTF-8 is declared and is not there", written(t, latin, city),
			Hints{ContentType: "application/json; charset=utf-8"},
			JSON, "Große", "windows-1252", true,
		},
		{
			"ASCII is declared and is not there", written(t, latin, "à bientôt"),
			Hints{ContentType: "text/plain; charset=us-ascii"},
			Text, "à bientôt", "windows-1252", true,
		},
		{
			"ISO-8859-1 is declared for what only windows-1252 has", written(t, charmap.Windows1252.NewEncoder(), "5 € – “ok”"),
			Hints{ContentType: "text/plain; charset=iso-8859-1"},
			Text, "5 € – “ok”", "windows-1252", true,
		},
		{
			"UTF-8 stays UTF-8 although another charset is declared", []byte(city),
			Hints{ContentType: "application/json; charset=iso-8859-1"},
			JSON, "Große", "", false,
		},
		{"an unknown charset", []byte(city), Hints{ContentType: "application/json; charset=acme-7"}, JSON, "Große", "", false},
		{
			"deflate:charset, as older versions of Spring write", zlibbed(t, written(t, latin, city)),
			Hints{ContentType: "application/json", ContentEncoding: "deflate:ISO-8859-1"},
			JSON, "Große", "ISO-8859-1", false,
		},
		{
			"gzip, charset, as newer ones do", payloadtest.Gzipped(t, written(t, latin, city)),
			Hints{ContentEncoding: "gzip, ISO-8859-1"},
			JSON, "Große", "ISO-8859-1", false,
		},
		{
			"gzip,charset", payloadtest.Gzipped(t, written(t, le, city)),
			Hints{ContentEncoding: "gzip,UTF-16LE"},
			JSON, "Große", "UTF-16LE", false,
		},
		{"deflate:UTF-8", zlibbed(t, []byte(city)), Hints{ContentEncoding: "deflate:UTF-8"}, JSON, "Große", "", false},
		{
			"inside of base64", encodeStd(written(t, latin, city)),
			Hints{ContentType: "text/plain; charset=ISO-8859-1", ContentEncoding: "base64"},
			JSON, "Große", "ISO-8859-1", false,
		},
		{"bytes", []byte("\x93\xa2id\xa3abc\xff\xfe\x80"), Hints{}, Binary, "", "", false},
		{"bytes that are declared as utf-8", []byte("\xc4\xe4 \xd6\xf6"), Hints{ContentEncoding: "utf-8"}, Binary, "", "", false},
		{"bytes of which a charset says nothing", []byte("\x01\x02\xe4"), Hints{ContentType: "text/plain; charset=latin1"}, Binary, "", "", false},
		{"a message", encode(t, email, `{"requestId": "é"}`), Hints{Type: email, ContentType: "x/y; charset=latin1"}, Protobuf, "é", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := decode(c.body, c.h)
			charset, guessed := doc.Charset()
			if doc.Kind != c.kind || !strings.Contains(doc.JSON+doc.Text, c.has) || charset != c.charset || guessed != c.guessed {
				t.Errorf("%s, %q, %t: %q\n%s", doc.Kind, charset, guessed, doc.JSON+doc.Text, stepsText(doc))
			}
			if strings.Contains(doc.JSON+doc.Text, "\ufffd") || strings.Contains(doc.JSON, `\ufffd`) {
				t.Error("a character is lost")
			}
			if strings.HasPrefix(c.name, "ASCII is declared") && !strings.Contains(stepsText(doc), "US-ASCII: the bytes are no text in it") {
				t.Errorf("no step says why the charset is not used:\n%s", stepsText(doc))
			}
			notes := strings.Join(doc.Notes, "\n")
			if strings.Contains(notes, "guess") != guessed || strings.Contains(Summary(doc, ""), "guessed") != guessed {
				t.Errorf("notes %q, summary %q", notes, Summary(doc, ""))
			}
		})
	}
}

// TestGuessesWithoutADeclaration reads bodies that are not UTF-8 and of which nothing says that
// they are text. A text in a charset of Western Europe is guessed. Other texts stay bytes, and so
// does everything else.
func TestGuessesWithoutADeclaration(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: schemas()}
	be := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder()
	const german = "Die Bestellung wurde wegen ungültiger Größe zurückgewiesen; bitte prüfen."
	const french = "« Le numéro n’est pas valide » : l’élève a été prévenu à Nîmes."
	for _, c := range []struct {
		text    string
		in      *encoding.Encoder
		charset string
	}{
		{german, charmap.ISO8859_1.NewEncoder(), "windows-1252"},
		{french, charmap.Windows1252.NewEncoder(), "windows-1252"},
		{german, be, "UTF-16BE"},
		{"Zażółć gęślą jaźń, napisał Łukasz do działu obsługi klienta.", charmap.Windows1250.NewEncoder(), ""},
		{"Заказ 4711 отклонён: неверный адрес", charmap.Windows1251.NewEncoder(), ""},
		{"注文 4711 は拒否されました", japanese.ShiftJIS.NewEncoder(), ""},
		{"注文 4711 は拒否されました", japanese.EUCJP.NewEncoder(), ""},
		{"Grüße an alle", charmap.Windows1252.NewEncoder(), ""}, // too short
	} {
		for _, media := range []string{"", "application/octet-stream", "application/x-msgpack"} {
			doc := d.Decode(written(t, c.in, c.text), Hints{ContentType: media}, nil)
			want, kind := c.charset, Text
			if media == "application/x-msgpack" || want == "" {
				want, kind = "", Binary
			}
			if name, guess := doc.Charset(); name != want || guess != (want != "") || doc.Kind != kind {
				t.Errorf("%s as %q: %s in %q", c.text, media, doc.Kind, name)
			}
		}
	}
	r := rand.New(rand.NewPCG(49, 9))
	for range 20_000 {
		body := make([]byte, 1+r.IntN(400))
		for i := range body {
			body[i] = byte(r.Uint32())
		}
		if name, guess := d.Decode(body, Hints{}, nil).Charset(); guess {
			t.Errorf("%s is guessed for the noise %x", name, body)
		}
	}
	text := "a text of MessagePack, which is long enough for its length to be a letter, of the alphabet"
	for what, body := range map[string][]byte{
		"MessagePack":        append([]byte{0xd9, byte(len(text))}, text...),
		"a map":              []byte("\x82\xa5order\xd9\x20" + text[:32] + "\xa4name\xa5Ren\xc3\xa9"),
		"gzip":               payloadtest.Gzipped(t, []byte(german))[1:],
		"numbers of 16 bits": []byte("\x41\x00\x42\x00\x01\x00\x43\x00\x44\x00\x45\x00\x46\x00\x47\x00"),
		"a message":          payloadtest.LengthPrefixed(5, []byte("stra\xdfe und noch etwas text dazu")),
		"a framed message":   delimited(payloadtest.LengthPrefixed(5, []byte("stra\xdfe und noch etwas text dazu"))),
	} {
		if name, _ := d.Decode(body, Hints{}, nil).Charset(); name != "" {
			t.Errorf("%s is guessed for %s", name, what)
		}
	}
}

// TestACharacterThatNoCharsetHas covers JSON with a byte that fits no charset. The replacement
// character is shown only with a note.
func TestACharacterThatNoCharsetHas(t *testing.T) {
	t.Parallel()
	doc := decode([]byte("{\"a\":\"x\x81\"}"), Hints{})
	if !strings.Contains(doc.JSON, `\ufffd`) || !strings.Contains(doc.JSONProblem, "not UTF-8") || len(doc.Notes) == 0 {
		t.Errorf("%q %q %q", doc.JSON, doc.JSONProblem, doc.Notes)
	}
}

// TestEditsAreWrittenInTheCharset edits texts of other charsets. Their bytes must stay in the
// charset, and a character that it does not have must be refused by its name.
func TestEditsAreWrittenInTheCharset(t *testing.T) {
	t.Parallel()
	latin := charmap.ISO8859_1.NewEncoder()
	be := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder()
	for _, c := range []struct {
		name       string
		body       []byte
		h          Hints
		old, new   string
		want       []byte
		whyNot     string
		line, from int
	}{
		{
			"JSON", written(t, latin, `{"city":"Nîmes"}`),
			Hints{ContentType: "application/json; charset=ISO-8859-1"},
			"Nîmes", "Köln", written(t, latin, "{\n  \"city\": \"Köln\"\n}"), "", 0, 0,
		},
		{
			"a text that was guessed", written(t, latin, "à bientôt, dit-elle\r\n"),
			Hints{ContentType: "text/plain"},
			"bientôt", "plus tard, mon cœur",
			written(t, charmap.Windows1252.NewEncoder(), "à plus tard, mon cœur, dit-elle\r\n"), "", 0, 0,
		},
		{
			"UTF-16 with its mark", written(t, be, "Nîmes"), Hints{}, "Nîmes", "Łódź", written(t, be, "Łódź"), "", 0, 0,
		},
		{
			"compressed", zlibbed(t, written(t, latin, "à bientôt")),
			Hints{ContentEncoding: "deflate:ISO-8859-1"},
			"bientôt", "toi", zlibbed(t, written(t, latin, "à toi")), "", 0, 0,
		},
		{
			"a character that is not there", written(t, latin, `{"city":"Nîmes"}`),
			Hints{ContentType: "application/json; charset=ISO-8859-1"},
			"Nîmes", "5 €", nil,
			"ISO-8859-1 has no character € (U+20AC)", 2, 14,
		},
		{
			"ASCII before", []byte(`{"city":"Nimes"}`),
			Hints{ContentType: "application/json; charset=ISO-8859-1"},
			"Nimes", "Nîmes", written(t, latin, "{\n  \"city\": \"Nîmes\"\n}"), "", 0, 0,
		},
		{
			"ASCII before, and a character that is not there", []byte("to Nimes"),
			Hints{ContentType: "text/plain; charset=ISO-8859-1"},
			"Nimes", "Nîmes €", nil, "ISO-8859-1 has no character € (U+20AC)", 1, 10,
		},
		{
			"ASCII before, compressed", zlibbed(t, []byte("to Nimes")),
			Hints{ContentEncoding: "deflate:ISO-8859-1"},
			"Nimes", "Nîmes", zlibbed(t, written(t, latin, "to Nîmes")), "", 0, 0,
		},
		{
			"ASCII before, in an envelope", []byte(`{"specversion":"1.0","id":"e","source":"s","type":"t","data":{"city":"Nimes"}}`),
			Hints{ContentType: ce + "; charset=ISO-8859-1"},
			"Nimes", "Nîmes",
			written(t, latin, "{\"specversion\":\"1.0\",\"id\":\"e\",\"source\":\"s\",\"type\":\"t\",\"data\":{\n  \"city\": \"Nîmes\"\n}}"), "", 0, 0,
		},
		{
			"ASCII before, and ISO-2022-JP", []byte("to Kyoto"),
			Hints{ContentType: "text/plain; charset=ISO-2022-JP"},
			"Kyoto", "京都", written(t, japanese.ISO2022JP.NewEncoder(), "to 京都"), "", 0, 0,
		},
		{
			"ASCII that is said to be UTF-16", []byte("to Nimes"),
			Hints{ContentType: "text/plain; charset=UTF-16"},
			"Nimes", "Nîmes", []byte("to Nîmes"), "", 0, 0,
		},
		{
			"nothing special is left", written(t, latin, "à bientôt, dit-elle"),
			Hints{ContentType: "text/plain"},
			"à bientôt, dit-elle", "bye",
			[]byte("bye"), "", 0, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &Decoder{Types: schemas()}
			e, err := d.Editable(c.body, c.h, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Edit(c.body, c.h, strings.Replace(e.Text, c.old, c.new, 1), nil)
			if c.whyNot != "" {
				wrong := (*EditError)(nil)
				if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Message, c.whyNot) || wrong.Line != c.line || wrong.Column != c.from {
					t.Fatalf("%+v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Body, c.want) {
				t.Errorf("%q, want %q", got.Body, c.want)
			}
			for _, check := range got.Checks {
				if !check.OK {
					t.Errorf("%+v", check)
				}
			}
		})
	}
}

// TestAnEditKeepsOtherCharacters covers texts with characters that a charset has twice. An edit
// would write the other form of them, so it is refused.
func TestAnEditKeepsOtherCharacters(t *testing.T) {
	t.Parallel()
	for charset, body := range map[string]string{
		"Shift_JIS": "\x87\x90 first\nabc\n", "EUC-JP": "\x8f\xa2\xb7 abc", "Big5": "\xa2\xcc abc",
	} {
		h := Hints{ContentType: "text/plain; charset=" + charset}
		doc := decode([]byte(body), h)
		_, err := editor().Editable([]byte(body), h, nil)
		if name, _ := doc.Charset(); name != charset || err == nil || !strings.Contains(err.Error(), "several ways in "+charset) {
			t.Errorf("%s: %q, %v", charset, name, err)
		}
	}
}

// TestMasksSeeTheConvertedText applies masks to texts of other charsets. A value must be hidden
// that is masked in the converted text, and nothing may be shown that was hidden in the bytes: not
// even if the declared charset is wrong.
func TestMasksSeeTheConvertedText(t *testing.T) {
	t.Parallel()
	const card = "4111111111111111"
	masks := Masks{
		Patterns: []*regexp.Regexp{digits16, regexp.MustCompile("geheim-ö[a-z]+|山田太郎")},
		JSON:     []deadletter.FieldPath{{"schlüssel"}, {"card"}, {"名前"}},
	}
	latin := charmap.ISO8859_1.NewEncoder()
	le := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder()
	be := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder()
	jp := japanese.ISO2022JP.NewEncoder()
	d := &Decoder{Types: schemas(), Mask: masks.Body()}
	for _, c := range []struct {
		name, secret string
		body         []byte
		h            Hints
	}{
		{"a pattern", card, written(t, latin, "für "+card), Hints{ContentType: "text/plain; charset=latin1"}},
		{"a pattern, guessed", card, written(t, latin, "für Karte "+card), Hints{ContentType: "text/plain"}},
		{"a pattern, nothing declared", card, written(t, latin, "für die Karte "+card), Hints{}},
		{"UTF-16, nothing declared", card, written(t, le, "die Karte "+card), Hints{}},
		{"a pattern in UTF-16", card, written(t, be, "für "+card), Hints{}},
		{"a pattern with a special character", "geheim", written(t, latin, "das geheim-öffnet"), Hints{ContentType: "text/plain; charset=latin1"}},
		{"a path with a special character", "kanarie", written(t, latin, `{"schlüssel":"kanarie"}`), Hints{ContentType: "application/json; charset=latin1"}},
		{"the same, guessed", "kanarie", written(t, latin, `{"schlüssel":"kanarie"}`), Hints{}},
		{"a path in UTF-16", "kanarie", written(t, be, `{"card":"kanarie"}`), Hints{}},
		{"a path in UTF-16, declared", "kanarie", written(t, le, `{"card":"kanarie"}`), Hints{ContentType: "a/b; charset=UTF-16LE"}},
		{"a wrong charset", "kanarie", []byte(`{"card":"kanarie"}`), Hints{ContentType: "application/json; charset=UTF-16LE"}},
		{"a wrong charset and a bad byte", "kanarie", []byte("{\"card\":\"kanarie\", \"b\":\"\xe4\xe4\xe4\"}"), Hints{ContentType: "a/b; charset=IBM037"}},
		{"ASCII is said to be UTF-16", card, []byte("card " + card + " \xe4 "), Hints{ContentType: "text/plain; charset=utf-16"}},
		{"a path in what is said to be UTF-16", "kanarie", []byte("x={\"card\":\"kanarie\"}\xe4 "), Hints{ContentType: "text/plain; charset=utf-16"}},
		{"ASCII is said to be EBCDIC", card, []byte("card " + card + " \xe4"), Hints{ContentType: "text/plain; charset=IBM037"}},
		{"UTF-16 with ASCII in its bytes", card, []byte("{\x00\"\x00a\x00\"\x00:\x00\"\x00" + card + "\"\x00}\x00"), Hints{ContentType: "application/json; charset=UTF-16LE"}},
		{"a path in ISO-2022-JP", "kanarie", written(t, jp, `{"名前":"kanarie"}`), Hints{ContentType: "application/json; charset=ISO-2022-JP"}},
		{"a pattern in ISO-2022-JP", ";3EDB@O:", written(t, jp, `("客 山田太郎")`), Hints{ContentType: "text/plain; charset=ISO-2022-JP"}},
		{"ASCII in ISO-2022-JP", card, written(t, jp, "客 "+card), Hints{ContentType: "text/plain; charset=ISO-2022-JP"}},
		{"JSON that HZ would read otherwise", "kanarie", []byte(`{"a~{":"x", "card":"kanarie~}"}`), Hints{ContentType: "a/b; charset=hz-gb-2312"}},
		{"UTF-8 and a wrong charset", "kanarie", []byte(`{"schlüssel":"kanarie"}`), Hints{ContentType: "application/json; charset=latin1"}},
		{"damaged JSON", "kanarie", written(t, latin, `{"schlüssel":"kanarie`), Hints{ContentType: "application/json; charset=latin1"}},
		{"damaged JSON, guessed", "kanarie", written(t, latin, `{"schlüssel":"kanarie`), Hints{}},
		{"in an envelope", "kanarie", written(t, latin, `{"specversion":"1.0","id":"é","source":"s","type":"t","data":{"schlüssel":"kanarie"}}`), Hints{ContentType: ce}},
	} {
		doc := d.Decode(c.body, c.h, nil)
		if shown := shownTexts(doc) + Words(doc); strings.Contains(shown, c.secret) || !d.BytesMasked(doc) {
			t.Errorf("%s: %q\n%s", c.name, doc.JSON+doc.Text, stepsText(doc))
		}
	}
	logins := &Decoder{Types: registry(t, "s", `syntax = "proto3"; package s;
message Login { bytes hash = 5 [debug_redact = true]; bytes salt = 4; }`)}
	message := []byte("\x2a\x20geheim-geheim-geheim-geheim-\xe4\xf6\xfc\xdf\x22\x20" + strings.Repeat("s\xe9", 16))
	for _, h := range []Hints{
		{Was: "s.Login", ContentEncoding: "iso-8859-1"},
		{Was: "s.Login", ContentType: "text/plain"},
		{Was: "s.Login", ContentType: "application/octet-stream; charset=latin1"},
	} {
		doc := logins.Decode(message, h, nil)
		if shown := shownTexts(doc) + Words(doc); doc.Type != "s.Login" || strings.Contains(shown, "geheim") || !logins.BytesMasked(doc) {
			t.Errorf("%+v: a message is read as %s: %q\n%s", h, doc.Kind, doc.Text, stepsText(doc))
		}
	}
	named := Masks{Headers: []string{"content-type"}}
	doc := (&Decoder{Mask: named.Body()}).Decode(written(t, latin, "für"), Hints{ContentType: "text/plain; charset=latin1"}, nil)
	if charset, _ := doc.Charset(); charset != Masked || strings.Contains(stepsText(doc), "8859") {
		t.Errorf("charset %q\n%s", charset, stepsText(doc))
	}
}
