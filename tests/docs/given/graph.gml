graph [
  directed 1
  node [ id 0 parameter 3 ]
  node [ id 1 parameter 2 ]
  node [ id 2 parameter 4 ]
  node [ id 3 parameter 1 ]
  edge [ source 0 target 2 parameter 1 ]
  edge [ source 1 target 2 parameter 0 ]
  edge [ source 2 target 3 parameter 1 ]
]
