// Checks the search of the site in the folder of the first argument: the index has to have every page,
// and a search for the words after it has to find the page of the second argument.
import { readdir, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, page, ...words] = process.argv.slice(2);
const index = new URL("pagefind/", pathToFileURL(resolve(folder) + "/"));
globalThis.fetch = async (address) => new Response(await readFile(new URL(address)));

const files = await readdir(folder, { recursive: true });
const pages = files.filter((name) => name.endsWith(".html")).length;
const { languages } = JSON.parse(await readFile(new URL("pagefind-entry.json", index), "utf8"));
if (languages.en.page_count !== pages) {
	throw new Error(`the index of the search has ${languages.en.page_count} of ${pages} pages`);
}
const pagefind = await import(new URL("pagefind.js", index));
await pagefind.options({ basePath: index.href, baseUrl: "/" });
const { results } = await pagefind.search(words.join(" "));
const found = await Promise.all(results.map(async (result) => (await result.data()).url));
if (!found.includes("/" + page)) {
	throw new Error(`a search for ${words.join(" ")} finds ${found.join(", ") || "nothing"}, but not ${page}`);
}
console.log(`search: ${pages} pages; ${words.join(" ")}: ${found.join(", ")}`);
