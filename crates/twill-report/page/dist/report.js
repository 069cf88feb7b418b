(() => {
  const shown = document.createElement("pre");
  shown.textContent = JSON.stringify(JSON.parse(document.getElementById("data").textContent), null, 1);
  document.getElementById("app").append(shown);
})();
