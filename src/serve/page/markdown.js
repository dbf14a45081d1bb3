// Markdown of a reply that is still being written, made harmless.
//
// A model's words are not trusted: raw HTML is shown as text, pictures become links (loading one would tell its server what was
// said), and what marked makes of the rest goes through DOMPurify with a short list of elements. The Content-Security-Policy
// stands behind that.
import DOMPurify from "dompurify";
import { Marked } from "marked";

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (c) => escapes[c]);

const marked = new Marked({
  gfm: true,
  renderer: {
    html: (token) => escape(token.text),
    image: (token) => `<a href="${escape(token.href)}">${escape(token.text || token.href)}</a>`,
    checkbox: (token) => (token.checked ? "☑ " : "☐ "),
  },
});

const allowed = {
  ALLOWED_TAGS: ["a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ALLOWED_ATTR: ["align", "href", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

// Shows `text` in `element`, one <div> a block. Only the blocks that changed since the last call are made anew: with each token
// that is the last one, so that long replies stay fast and a selection in them stays.
export function render(element, text) {
  const tokens = marked.lexer(text).filter((token) => token.type !== "space");
  tokens.forEach((token, i) => {
    let block = element.children[i];
    if (block && block.markdown === token.raw) return;
    if (!block) block = element.appendChild(document.createElement("div"));
    block.markdown = token.raw;
    block.replaceChildren(DOMPurify.sanitize(marked.parser([token]), allowed));
  });
  while (element.children.length > tokens.length) element.lastChild.remove();
}

// Text of a program, such as JSON.
export function renderCode(element, text) {
  const pre = document.createElement("pre");
  pre.appendChild(document.createElement("code")).textContent = text;
  element.replaceChildren(document.createElement("div"));
  element.firstChild.append(pre);
}
