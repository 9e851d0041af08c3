// Calls a running dlo with the generated types: node call.js URL. It reads, saves, and asks for a
// letter that is not there.
import createClient from "openapi-fetch";
import type { paths } from "./client.d.ts";

declare const process: { argv: string[] };

const dlo = createClient<paths>({ baseUrl: process.argv[2] });

function hold(sound: boolean, what: string): asserts sound {
	if (!sound) throw new Error(what);
}

const added = await dlo.POST("/views", { body: { name: "overnight", query: "state:dead" } });
hold(added.response.status === 201, JSON.stringify(added.error));

const views = await dlo.GET("/views");
hold(views.data?.views.length === 1 && views.data.views[0].query === "state:dead", JSON.stringify(views));

const letters = await dlo.GET("/letters", { params: { query: { q: "state:dead", limit: 10 } } });
hold(letters.data?.letters.length === 0, JSON.stringify(letters));

const missing = await dlo.GET("/letters/{id}", { params: { path: { id: "01a1f82e-3420-7001-8000-000000000001" } } });
hold(missing.error !== undefined && missing.error.detail !== "", JSON.stringify(missing));

// The compiler refuses what the document does not have.
// @ts-expect-error: there is no such field
views.data?.views[0].colour;
// @ts-expect-error: a view has a query
await dlo.POST("/views", { body: { name: "none" } });
