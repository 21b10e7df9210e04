(function () {
  "use strict";
  var figures = JSON.parse(document.getElementById("figures").textContent);
  Object.keys(figures).forEach(function (id) {
    var one = figures[id];
    try {
      Plotly.newPlot(id, one.data, one.layout, {displayModeBar: false, responsive: true});
    } catch (error) {  // told on the console; the others are drawn all the same
      setTimeout(function () { throw error; });
    }
  });
}());
