package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

const apiPath = "/api/v1"

// calls is the table of the API for scripts and the command line. See type call.
func (w *Web) calls() []call {
	return []call{
		plain[documentIn, none](http.MethodGet, "/openapi.json", within(deadletter.VerbView), w.getDocument),
		row(http.MethodGet, "/letters", within(deadletter.VerbView), w.listLetters).inTurn(),
		row(http.MethodGet, "/letters/count", within(deadletter.VerbView), w.countLetters).inTurn(),
		row(http.MethodGet, "/letters/facets", within(deadletter.VerbView), w.listFacets).inTurn(),
		row(http.MethodGet, "/letters/histogram", within(deadletter.VerbView), w.getHistogram).inTurn(),
		plain[exportIn, reply[api.ExportedLetter]](http.MethodGet, "/letters/export", within(deadletter.VerbRead), w.exportLetters),
		plain[struct{}, reply[api.Import]](http.MethodPost, "/letters/import", everywhere(deadletter.VerbImport), w.importLetters),
		row(http.MethodGet, "/letters/{id}", within(deadletter.VerbView), w.getLetter),
		plain[bodyIn, none](http.MethodGet, "/letters/{id}/body", within(deadletter.VerbRead), w.getBody),
		row(http.MethodPost, "/letters/{id}/reveal", within(deadletter.VerbReveal), w.revealValue).
			form("/letters/{id}/reveal", "").
			reading(readReveal).
			showing(w.showRevealed),
		row(http.MethodGet, "/operations", within(deadletter.VerbView), w.listOperations),
		row(http.MethodPost, "/operations", within(deadletter.VerbRequeue), w.startOperation).
			form("/operations", "").
			reading(w.readOperation).
			showing(w.showStarted).
			orAgain(w.operationAgain),
		row(http.MethodGet, "/operations/{id}", within(deadletter.VerbView), w.getOperation),
		row(http.MethodPatch, "/operations/{id}", within(deadletter.VerbCancel), w.changeOperation).
			form("/operations/{id}/rate", "/operations/{id}").
			orAgain(w.rateAgain),
		row(http.MethodPost, "/operations/{id}/pause", within(deadletter.VerbCancel), w.pauseOperation).
			form("/operations/{id}/pause", "/operations/{id}"),
		row(http.MethodPost, "/operations/{id}/resume", within(deadletter.VerbCancel), w.resumeOperation).
			form("/operations/{id}/resume", "/operations/{id}"),
		row(http.MethodPost, "/operations/{id}/cancel", within(deadletter.VerbCancel), w.cancelOperation).
			form("/operations/{id}/cancel", "/operations/{id}"),
		row(http.MethodGet, "/views", within(deadletter.VerbView), w.listViews),
		row(http.MethodPost, "/views", within(deadletter.VerbOwnViews), w.addView).
			form("/views", "").
			reading(readView).
			going(afterView),
		row(http.MethodDelete, "/views/{id}", within(deadletter.VerbOwnViews), w.removeView).
			form("/views/{id}/remove", "/letters"),
		row(http.MethodGet, "/overrides", within(deadletter.VerbView), w.listOverrides),
		row(http.MethodPost, "/overrides", within(deadletter.VerbRedirect), w.addOverride).
			form("/rules/overrides", "/rules").
			everywhere().
			orAgain(w.redirectAgain),
		row(http.MethodDelete, "/overrides/{id}", within(deadletter.VerbRedirect), w.removeOverride).
			form("/rules/overrides/{id}/remove", "/rules").
			everywhere(),
		row(http.MethodPost, "/letters/{id}/type", everywhere(deadletter.VerbTypes), w.pickType).
			form("/letters/{id}/type", "/letters/{id}").
			orAgain(w.pickAgain),
		row(http.MethodPost, "/letters/{id}/revisions", within(deadletter.VerbEdit), w.reviseLetter).
			form("/letters/{id}/edit", "").
			reading(w.readEdit).
			showing(w.showEdited).
			orAgain(w.editAgain),
		row(http.MethodGet, "/bindings", everywhere(deadletter.VerbView), w.listBindings),
		row(http.MethodPost, "/bindings", everywhere(deadletter.VerbTypes), w.addBinding).
			form("/schemas/bindings", "").
			going(afterBinding).
			orAgain(w.bindAgain),
		row(http.MethodDelete, "/bindings/{id}", everywhere(deadletter.VerbTypes), w.removeBinding).
			form("/schemas/picks/{id}/remove", "/schemas"),
		row(http.MethodGet, "/types", everywhere(deadletter.VerbView), w.listTypes),
		row(http.MethodPost, "/types", everywhere(deadletter.VerbTypes), w.addTypes).
			form(uploadPath, "").
			reading(previewUpload).
			showing(w.showUpload).
			orAgain(w.uploadAgain).
			form(uploadPath+"/use", "").
			reading(w.readKept).
			going(w.afterUpload).
			orAgain(w.useAgain),
		row(http.MethodDelete, "/types/{set}", everywhere(deadletter.VerbTypes), w.removeTypes).
			form("/schemas/remove", "/schemas").
			form("/schemas/remove/confirm", "").
			reading(previewRemoval).
			showing(w.showRemoval),
		row(http.MethodGet, "/types/proto", everywhere(deadletter.VerbView), w.getProto),
		row(http.MethodPost, "/types/match", everywhere(deadletter.VerbRead), w.matchTypes),
		row(http.MethodGet, "/rules", everywhere(deadletter.VerbView), w.listRules),
		row(http.MethodPost, "/rules/test", everywhere(deadletter.VerbRead), w.testRules).
			form("/rules/try", "").
			reading(readTest).
			showing(w.showTested).
			orAgain(w.testAgain),
		row(http.MethodPost, "/rules/apply", everywhere(deadletter.VerbReschedule), w.applyRules).
			form("/rules/apply/confirm", "").
			reading(w.previewApply).
			showing(w.showApplied).
			orAgain(w.applyAgain).
			form("/rules/apply", "").
			reading(w.readApply).
			showing(w.showApplied).
			orAgain(w.applyAgain),
		row(http.MethodPost, "/settings", everywhere(deadletter.VerbRead), w.changeSetting).
			form("/settings", "").
			reading(readSetting).
			showing(w.showSetting).
			orAgain(w.settingAgain),
		row(http.MethodGet, "/deploys", everywhere(deadletter.VerbView), w.listDeploys),
		row(http.MethodPost, "/deploys", everywhere(deadletter.VerbDeploy), w.addDeploy),
		row(http.MethodGet, "/digest", within(deadletter.VerbView), w.getDigest),
		row(http.MethodPost, "/digest/send", everywhere(deadletter.VerbTell), w.sendDigest).
			form("/triage/digest", view.TriageURL(view.TriageDigest, "", "")+"&sent=1"),
		row(http.MethodPost, "/channels/test", everywhere(deadletter.VerbTell), w.testChannel).
			form("/channels/test", "/#health"),
		plain[auditIn, reply[api.Audit]](http.MethodGet, "/audit", within(deadletter.VerbView), w.listAudit),
		row(http.MethodGet, "/brokers", within(deadletter.VerbView), w.listBrokers),
		row(http.MethodGet, "/doctor", everywhere(deadletter.VerbView), w.getDoctor).inTurn(),
		row(http.MethodGet, "/topology/findings", within(deadletter.VerbView), w.listFindings),
		row(http.MethodPost, "/topology/plan", everywhere(deadletter.VerbView), w.planTopology),
		row(http.MethodPost, "/topology/apply", everywhere(deadletter.VerbAdopt), w.applyTopology).
			form("/queues/adopt", "/queues#policies").
			reading(w.readPlan).
			orAgain(w.queuesAgain),
		row(http.MethodGet, "/topology/adopted", everywhere(deadletter.VerbView), w.listAdopted),
		row(http.MethodPost, "/topology/undo", everywhere(deadletter.VerbAdopt), w.undoTopology).
			form("/queues/undo", "/queues#policies").
			orAgain(w.queuesAgain),
		row(http.MethodPost, "/topology/leave", everywhere(deadletter.VerbAdopt), w.leaveTopology).
			form("/queues/leave", "/queues#policies").
			orAgain(w.queuesAgain),
		row(http.MethodPost, "/brokers/{name}/connect", everywhere(deadletter.VerbConnect), w.connectBroker).
			form("/brokers/connect", "/"),
		row(http.MethodGet, "/trial", everywhere(deadletter.VerbView), w.getTrial),
		row(http.MethodPost, "/trial", everywhere(deadletter.VerbTry), w.startTrial).form("/trial", "/"),
		row(http.MethodGet, "/queues", within(deadletter.VerbView), w.listQueues),
		row(http.MethodPost, "/queues/pause", within(deadletter.VerbGuard), w.pauseQueue).
			form("/queues/pause", "/queues").
			orAgain(w.queuesAgain),
		row(http.MethodPost, "/queues/resume", within(deadletter.VerbGuard), w.resumeQueue).
			form("/queues/resume", "/queues").
			orAgain(w.queuesAgain),
		row(http.MethodGet, "/groups", within(deadletter.VerbView), w.listGroups),
		row(http.MethodGet, "/groups/decisions", within(deadletter.VerbView), w.listDecisions),
		row(http.MethodPost, "/groups/decisions", within(deadletter.VerbTriage), w.decideGroups).
			form("/triage", "").
			reading(w.readDecision).
			going(afterDecision),
		row(http.MethodPost, "/groups/decisions/{id}/undo", within(deadletter.VerbTriage), w.undoDecision).
			form("/triage/undo", "").
			going(afterDecision),
		row(http.MethodGet, "/groups/{id}", within(deadletter.VerbView), w.getGroup),
		row(http.MethodPatch, "/groups/{id}", within(deadletter.VerbTriage), w.changeGroup),
		row(http.MethodPost, "/groups/{id}/merge", within(deadletter.VerbTriage), w.mergeGroups).
			form("/groups/merge", "").
			reading(readMerge).
			going(afterDecision),
		row(http.MethodPost, "/groups/{id}/split", within(deadletter.VerbTriage), w.splitGroup).
			form("/groups/split", "").
			going(afterDecision),
		row(http.MethodPost, "/groups/{id}/pause", within(deadletter.VerbGuard), w.pauseGroup).
			form("/groups/{id}/pause", "/groups/{id}"),
		row(http.MethodPost, "/groups/{id}/resume", within(deadletter.VerbGuard), w.resumeGroup).
			form("/groups/{id}/resume", "/groups/{id}"),
		row(http.MethodGet, "/queues/drains", everywhere(deadletter.VerbView), w.listDrains),
		row(http.MethodPost, "/queues/drain", everywhere(deadletter.VerbDrain), w.startDrain),
		row(http.MethodPost, "/queues/drains/{id}/stop", everywhere(deadletter.VerbDrain), w.stopDrain),
		row(http.MethodPost, "/store/accept", everywhere(deadletter.VerbStore), w.acceptStore).
			form("/store/accept", "/"),
		row(http.MethodPost, "/store/hold", everywhere(deadletter.VerbStore), w.holdCopy).form("/store/hold", "/"),
		row(http.MethodPost, "/reload", everywhere(deadletter.VerbSettings), w.reloadConfiguration),
		plain[backupIn, none](http.MethodPost, "/backup", everywhere(deadletter.VerbBackup), w.takeBackup),
		row(http.MethodGet, "/me", within(deadletter.VerbView), w.getMe),
		row(http.MethodGet, "/tokens", everywhere(deadletter.VerbAccess), w.listTokens),
		row(http.MethodPost, "/tokens", everywhere(deadletter.VerbAccess), w.addToken).
			form("/access/tokens", "").
			reading(w.readToken).
			showing(w.showToken).
			orAgain(w.accessAgain("token")),
		row(http.MethodDelete, "/tokens/{name}", everywhere(deadletter.VerbAccess), w.revokeToken).
			form("/access/tokens/revoke", "/access"),
		row(http.MethodGet, "/users", everywhere(deadletter.VerbAccess), w.listUsers),
		row(http.MethodPost, "/users", everywhere(deadletter.VerbAccess), w.addUser).
			form("/access/users", "").
			reading(readUser).
			showing(w.showLink).
			orAgain(w.accessAgain("user")),
		row(http.MethodPost, "/users/{name}/reset", everywhere(deadletter.VerbAccess), w.resetUser).
			form("/access/users/reset", "").
			showing(w.showReset),
		row(http.MethodDelete, "/users/{name}", everywhere(deadletter.VerbAccess), w.removeUser).
			form("/access/users/remove", "/access"),
		row(http.MethodPost, "/annotations", within(deadletter.VerbAnnotate), w.addAnnotations),
		plain[eventsIn, none](http.MethodGet, "/events", within(deadletter.VerbView), w.watchEvents),
	}
}
