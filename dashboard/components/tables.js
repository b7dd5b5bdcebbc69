// Streamlit gives a table's name to its buttons only: here the grid gets it, which screen readers announce.

new MutationObserver(() => {
  for (const table of document.querySelectorAll("[data-testid=stDataFrame]")) {
    const named = table.querySelector("button[aria-label*=': ']")?.getAttribute("aria-label").replace(/^.*?: /, "")
    const grid = table.querySelector("[role=grid]")
    if (grid && named && grid.getAttribute("aria-label") !== named) grid.setAttribute("aria-label", named)
  }
}).observe(document, { childList: true, subtree: true })
