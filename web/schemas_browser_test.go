package web_test

import (
	"strconv"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAnUploadDecodesLetters covers an upload that decodes a letter that could not be read before.
// Even without JavaScript, the upload must change nothing before a person confirms it. The test
// then adds a binding for the letter's queue, and removes it.
func TestAnUploadDecodesLetters(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	for _, scripts := range []bool{true, false} {
		t.Run("scripts "+strconv.FormatBool(scripts), func(t *testing.T) {
			h, tab, url := visit(t, withEmptyLibrary)
			tab.JavaScript(scripts)
			id := string(h.arrive("email", 2, mailBody)[0])
			click := func(selector string) {
				t.Helper()
				eventually(t, tab, "document.readyState == 'complete' && document.querySelector(`"+selector+"`)")
				tab.Act("document.querySelector(`" + selector + "`).click()")
			}
			says := func(text string) {
				t.Helper()
				eventually(t, tab, "document.querySelector('main')?.innerText.includes(`"+text+"`)")
			}
			tab.Open(url + "/letters/" + id)
			says("Protobuf without a schema.")
			tab.Open(url + "/schemas")
			says("2 match no schema")
			says("0% of 2 stored letters decode")
			tab.Act(`const files = new DataTransfer();
				files.items.add(new File([` + strconv.Quote(notifySource) + `], 'notify.proto'));
				document.querySelector('#upload-file').files = files.files;
				document.querySelector('[action="/schemas/upload"] button').click()`)
			says("2 of 2 letters that no schema can decode now would decode")
			if len(h.Decoder().Types.Types()) != 0 {
				t.Error("the preview counts already")
			}
			checkConsole(t, tab)
			click(`[action="/schemas/upload/use"] button`)
			eventually(t, tab, `location.pathname == '/schemas' && location.search.startsWith('?set=notify&used=')`)
			says("Letters are being read again")
			h.reread()
			if scripts { // with scripts, the page is live
				eventually(
					t, tab,
					`document.querySelector('#coverage').innerText.includes('100%') && !document.querySelector('#rereading').innerText`,
				)
			}
			tab.Open(url + "/letters/" + id)
			eventually(t, tab, `document.querySelector('[data-testid=tree]')?.innerText.includes('"welcome_v3"')`)

			click(`details.use summary`)
			click(`details.use [value="binding"]`)
			eventually(
				t, tab,
				`document.querySelector('[data-testid=picked]')?.innerText.includes('picked by you (no sign-in) for email')`,
			)
			tab.Open(url + "/schemas?bind=email")
			eventually(
				t, tab,
				`document.querySelector('#bind-queue').value == 'email' && document.querySelector('#types option').value == 'acme.notify.v1.EmailRequested'`,
			)
			says("bound by you (no sign-in)")
			click(`[action="/schemas/picks/1/remove"] button`)
			eventually(
				t, tab,
				`location.pathname == '/schemas' && document.readyState == 'complete' && !document.querySelector('main').innerText.includes('bound by you (no sign-in)')`,
			)
			checkConsole(t, tab)
		})
	}
}
